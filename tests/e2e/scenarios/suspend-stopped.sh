# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# follow --stopped: SIGSTOP to a job's process group frees its GPU memory, SIGCONT gives it back before the job runs; it may be killed
# gpus: 1xmi100-256m
# tier: all
# seconds: 200

slice=/sys/fs/cgroup/e2e-spur
job_cgroup=$slice/job_7

follow_start() {
	"$top/build/amdgpu-checkpoint" follow --stopped --cgroup "$slice" >>"$work/follow.out" 2>&1 &
	follow=$!
}

# is PID STATE
is() {
	"$top/build/amdgpu-checkpoint" state "$1" 2>&1 | grep -q ": $2"
}

# expect_is PID STATE
expect_is() {
	wait_until 30 is "$1" "$2" || fail "pid $1 is not $2: $("$top/build/amdgpu-checkpoint" state "$1" 2>&1); $(tail -n 3 "$work/follow.out")"
}

# signal NAME: as a scheduler, to all that were in the job's cgroup when it was started
signal() {
	kill -"$1" "${job_pids[@]}" "$idle"
}

mkdir -p "$job_cgroup"
sleep 1000 &
idle=$!
job_start --vram 140M
for pid in "${job_pids[@]}" "$idle"; do
	echo "$pid" >"$job_cgroup/cgroup.procs"
done
job_picture
follow_start

# Another job has the memory when the first one is continued.
signal STOP
expect_is "${job_pids[0]}" suspended
expect_vram_below 2097152
is "$idle" suspended || fail "what is stopped beside it was not suspended with it"
stranger_start --vram 140M
signal CONT
sleep 3
expect_is "${job_pids[0]}" suspended
stranger_end
expect_is "${job_pids[0]}" running
expect_is "$idle" running
expect_unharmed
grep -q '^State:.S' "/proc/$idle/status" || fail "what has no GPU stays stopped: $(grep ^State "/proc/$idle/status")"

# Its own SIGSTOP is no reason: what is suspended by hand stays so, and what is resumed by hand runs.
job_suspend
sleep 1
expect_is "${job_pids[0]}" suspended
job_resume
sleep 1
expect_is "${job_pids[0]}" running
[ "$(grep -c 'stopped by a signal' "$work/follow.out")" = 1 ] || fail "follow has seen other stops: $(<"$work/follow.out")"
expect_unharmed

# Killed while it waits, and in the middle; the next one goes on.
for delay in 5 0.4 0.7; do
	signal STOP
	sleep "$delay"
	pkill -KILL -P "$follow" || true
	kill -KILL "$follow"
	wait "$follow" || true
	follow_start
	expect_is "${job_pids[0]}" suspended
	signal CONT
	expect_is "${job_pids[0]}" running
	expect_unharmed
done

# Cancelled while it is suspended.
signal STOP
expect_is "${job_pids[0]}" suspended
signal KILL
wait "$idle" || true
expect_gone
wait_until 10 nothing_kept || fail "contents of a job that is gone are still there"
[ -z "$(find "$slice" -name 'amdgpu-suspended-*')" ] || fail "a cgroup is left"
expect_no_objects
kill -TERM "$follow"
wait "$follow" || fail "follow ended with status $?: $(tail -n 2 "$work/follow.out")"
rmdir "$job_cgroup" "$slice"
rm -f /run/amdgpu-checkpoint-follow.lock
