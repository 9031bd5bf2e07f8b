# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# follow: whoever freezes a cgroup gets its GPU memory, whoever thaws it gets the job back; it may be killed at any time
# gpus: 1xmi100-256m
# tier: all
# seconds: 300

slice=/sys/fs/cgroup/e2e-slice
leaf=$slice/job/task
other=$slice/other

follow_start() {
	"$top/build/amdgpu-checkpoint" follow --cgroup "$slice" >>"$work/follow.out" 2>&1 &
	follow=$!
}

follow_kill() {
	kill -KILL "$follow"
	wait "$follow" || true
}

# is PID STATE
is() {
	"$top/build/amdgpu-checkpoint" state "$1" 2>&1 | grep -q ": $2"
}

# expect_is PID STATE
expect_is() {
	wait_until 30 is "$1" "$2" || fail "pid $1 is not $2: $("$top/build/amdgpu-checkpoint" state "$1" 2>&1); $(tail -n 3 "$work/follow.out")"
}

freeze() {
	echo "$2" >"$1/cgroup.freeze"
}

mkdir -p "$leaf" "$other"
sleep 1000 &
idle=$!
echo "$idle" >"$other/cgroup.procs"
job_start --vram 140M
for pid in "${job_pids[@]}"; do
	echo "$pid" >"$leaf/cgroup.procs"
done
job_picture
follow_start

# An engine freezes a cgroup above, and another job has the memory.
freeze "$slice/job" 1
expect_is "${job_pids[0]}" suspended
expect_vram_below 2097152
[ "$(<"$slice/job/cgroup.freeze")" = 1 ] || fail "who asks does not see any more that the cgroup is frozen"
stranger_start --vram 140M
freeze "$slice/job" 0
sleep 3
expect_is "${job_pids[0]}" suspended
stranger_end
expect_is "${job_pids[0]}" running
expect_unharmed

# An engine freezes the process' own cgroup; one without a GPU is only frozen.
freeze "$leaf" 1
freeze "$other" 1
expect_is "${job_pids[0]}" suspended
is "$idle" running || fail "a process without a GPU was suspended"
freeze "$other" 0
grep -q '^State:.S' "/proc/$idle/status" || fail "a process without a GPU was stopped: $(grep ^State "/proc/$idle/status")"
freeze "$leaf" 0
expect_is "${job_pids[0]}" running
expect_unharmed

# Killed while it waits, and in the middle; the next one goes on.
freeze "$slice/job" 1
expect_is "${job_pids[0]}" suspended
follow_kill
freeze "$slice/job" 0
follow_start
expect_is "${job_pids[0]}" running
expect_unharmed
for delay in 0.4 0.6 0.9 1.3; do
	freeze "$slice/job" 1
	sleep "$delay"
	pkill -KILL -P "$follow" || true
	follow_kill
	# While calls are made the cgroup is thawed.
	freeze "$slice/job" 1
	follow_start
	expect_is "${job_pids[0]}" suspended
	freeze "$slice/job" 0
	sleep "$delay"
	pkill -KILL -P "$follow" || true
	follow_kill
	follow_start
	expect_is "${job_pids[0]}" running
	expect_unharmed
done

# What is suspended by hand stays so, whatever becomes of its cgroup.
job_suspend
freeze "$slice/job" 1
sleep 1
freeze "$slice/job" 0
sleep 1
expect_is "${job_pids[0]}" suspended
job_resume
expect_unharmed

# The cgroup goes, and the job with it.
freeze "$slice/job" 1
expect_is "${job_pids[0]}" suspended
echo 1 >"$slice/job/cgroup.kill"
expect_gone
wait_until 10 nothing_kept || fail "contents of a job that is gone are still there"
expect_no_objects
kill -TERM "$follow"
wait "$follow" || fail "follow ended with status $?: $(tail -n 2 "$work/follow.out")"
kill "$idle"
wait "$idle" || true
rmdir "$leaf" "$slice/job" "$other" "$slice"
rm -f /run/amdgpu-checkpoint-follow.lock
