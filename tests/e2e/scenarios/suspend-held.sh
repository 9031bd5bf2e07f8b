# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Nothing but resume lets a suspended job run: one that reads VRAM by the CPU would die at once of a thaw, SIGTERM and SIGCONT, in any order
# gpus: 1xmi100-256m
# tier: all
# seconds: 300

slice=/sys/fs/cgroup/e2e-held
unit=$slice/job

is_resumed() {
	tool_run resume "${job_pids[@]}" || fail "$1: resume: $(<"$work/tool.out")"
	[ -z "$(find "$slice" -name 'amdgpu-suspended-*')" ] || fail "$1: a cgroup is left"
}

# is_done: a job that has had SIGTERM checks all its bytes, gives all back and ends
is_done() {
	wait_until "$job_limit" no_process "${job_pids[0]}" || fail "$1: the job does not end: $(state_get "$job" phase)"
	[ "$(state_get "$job" phase)" = "done" ] || fail "$1: $(state_get "$job" phase): $(job_message)"
	expect_no_objects
}

no_command() {
	! pgrep -f "^$top/build/amdgpu-checkpoint (suspend|resume) " >/dev/null
}

mkdir -p "$unit"
for order in "thaw TERM CONT" "TERM CONT thaw" "CONT thaw TERM" "TERM thaw CONT"; do
	job_start --vram 8M --extra reads
	echo "${job_pids[0]}" >"$unit/cgroup.procs"
	echo 1 >"$unit/cgroup.freeze"
	job_suspend
	for step in $order; do
		if [ "$step" = thaw ]; then
			echo 0 >"$unit/cgroup.freeze"
		else
			kill -"$step" "${job_pids[0]}"
		fi
		sleep 0.3
		alive "${job_pids[0]}" || fail "$order: dead after $step"
	done
	is_resumed "$order"
	is_done "$order"
done

# below_su LOOK COMMAND...: the command has su start the job, which is suspended, looked at and resumed, three times
below_su() {
	local look=$1
	shift
	rm -f "$job"
	setsid "$@" >"$work/su.out" 2>&1 &
	parent=$!
	wait_until 60 grep -qs '^phase running' "$job" || fail "the job below su does not start: $(<"$work/su.out")"
	job_pids=("$(state_get "$job" pid)")
	for ((n = 0; n < 3; n++)); do
		job_suspend
		"$look"
		job_resume
		expect_right
		grep -q '^State:.S' "/proc/$parent/status" || fail "su stays stopped: $(grep ^State "/proc/$parent/status")"
	done
	kill -TERM "${job_pids[0]}"
	wait "$parent" || true
}

both_are_continued() {
	kill -CONT "$parent" "${job_pids[0]}"
	sleep 0.3
	alive "${job_pids[0]}" || fail "su lets the job run without its memory"
}

sigstop_holds_it() {
	sleep 0.3
	grep -q '^State:.T' "/proc/${job_pids[0]}/status" || fail "su continues the job without its memory"
}

# dies_in_the_middle: both processes of a suspend are killed, the job and su stay stopped, and a resume lets both go on
dies_in_the_middle() {
	job_resume
	faults "sys:ptrace 40 KILL" "sys:ptrace 41 KILL"
	{ "${faulty[@]}" "$top/build/amdgpu-checkpoint" suspend "${job_pids[0]}" >"$work/tool.out" 2>&1 || true; } 2>/dev/null
	faults
	grep -q '^State:.T' "/proc/$parent/status" || fail "su is not stopped when a suspend is killed: $(<"$work/tool.out")"
}

# Its parent is su, which stops with a child that it finds stopped.
below_su both_are_continued su -s /bin/sh root -c "exec '$gpujob' --state '$job' --vram 8M --extra reads"
is_done "below su"
below_su dies_in_the_middle su -s /bin/sh root -c "exec '$gpujob' --state '$job' --vram 8M --extra reads"
is_done "below su, killed in the middle"

# Where it cannot have a cgroup of its own SIGSTOP alone holds it, until the resume, and su stays stopped as well.
echo 0 >"$unit/cgroup.max.descendants"
below_su sigstop_holds_it sh -c "echo \$\$ >'$unit/cgroup.procs'; exec su -s /bin/sh root -c \"exec '$gpujob' --state '$job' --vram 8M\""
is_done "below su, without a cgroup"
echo max >"$unit/cgroup.max.descendants"

# The command and the job are of one unit that is stopped: both processes of the command get SIGTERM, at any call, and the job
# SIGCONT after that. The calls that are begun are made to their end first.
for ((n = 5; ; n += 5 + n / 2)); do
	job_start --vram 1M --extra reads
	faults "sys:ptrace $n TERM"
	"${faulty[@]}" "$top/build/amdgpu-checkpoint" suspend "${job_pids[0]}" >"$work/tool.out" 2>&1 &
	status=0
	wait "$!" || status=$?
	wait_until 60 no_command || fail "suspend, SIGTERM at call $n: does not end"
	faults
	kill -CONT "${job_pids[0]}"
	sleep 0.3
	alive "${job_pids[0]}" || fail "suspend, SIGTERM at call $n: the job has run without its memory"
	tool_run resume "${job_pids[0]}" || fail "suspend, SIGTERM at call $n: resume: $(<"$work/tool.out")"
	expect_right
	nothing_kept || fail "suspend, SIGTERM at call $n: left behind: $(find /run/amdgpu-checkpoint)"
	job_end
	[ "$status" -ne 0 ] || break
done
[ "$n" -gt 50 ] || fail "a suspend makes only $n calls"

# Killed while it is suspended: nothing stays frozen, nothing stays in memory.
job_start --vram 8M
echo "${job_pids[0]}" >"$unit/cgroup.procs"
job_suspend
[ -d "$unit/amdgpu-suspended-${job_pids[0]}" ] || fail "it is in no cgroup of its own"
kill -KILL "${job_pids[0]}"
expect_gone
tool_run state || true
[ -z "$(find "$slice" -name 'amdgpu-suspended-*')" ] || fail "the cgroup of a job that was killed is left"
rmdir "$unit" "$slice"
