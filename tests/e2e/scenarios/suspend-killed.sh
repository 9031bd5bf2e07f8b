# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A suspend and a resume that are killed at any call: the job goes on, at once or with the next resume
# gpus: 1xmi100
# tier: all
# seconds: 400

# killed WHAT NTH [NTH2]: the command dies after that ptrace() call, and what takes the processes back after the second one; 1: it does not get so far
killed() {
	local what=$1 status=0
	faults "sys:ptrace $2 KILL" ${3:+"sys:ptrace $3 KILL"}
	{
		"${faulty[@]}" "$top/build/amdgpu-checkpoint" "$what" "${job_pids[@]}" >"$work/tool.out" 2>&1 || status=$?
	} 2>"$work/killed.out"
	faults
	[ "$status" -ne 0 ]
}

# is_whole: the job runs, or a resume lets it
is_whole() {
	tool_run resume "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
	expect_progress
	nothing_kept || fail "records are left: $(ls /run/amdgpu-checkpoint)"
}

# child_is STATE
child_is() {
	child=$(pgrep -P "$tool_pid") && grep -q "^State:.$1" "/proc/$child/status"
}

job_start "${small[@]}"
job_picture

# Who is killed alone is cleaned up after.
for ((n = 1; ; n += 1 + n / 3)); do
	killed suspend "$n" || break
	grep -q 'was killed; the processes run again' "$work/tool.out" || fail "suspend, call $n: $(<"$work/tool.out")"
	expect_progress
done
[ "$n" -gt 50 ] || fail "a suspend makes only $n calls"
is_whole
expect_unharmed

# Another process traces the job when it is to be taken back, for two seconds.
faults "sys:ptrace 40 STOP"
"${faulty[@]}" "$top/build/amdgpu-checkpoint" suspend "${job_pids[@]}" >"$work/tool.out" 2>&1 &
tool_pid=$!
wait_until 20 child_is T || fail "the child makes fewer than 40 calls"
perl -e '$| = 1; my $pid = 0 + shift; 1 while syscall(101, 0x4206, $pid, 0, 0); print "traces\n"; sleep 2' \
	"${job_pids[0]}" >"$work/perl.out" & # PTRACE_SEIZE
tracer=$!
sleep 0.5
kill -KILL "$child"
{ wait "$tool_pid" || true; } 2>/dev/null
grep -q 'was killed; the processes run again' "$work/tool.out" || fail "beside a tracer: $(<"$work/tool.out"); $(<"$work/perl.out")"
kill "$tracer" 2>/dev/null || true
{ wait "$tracer" || true; } 2>/dev/null
faults
echo "# the other process $(<"$work/perl.out")"
is_whole
expect_unharmed

# Both are killed.
for ((n = 2; ; n += 1 + n / 2)); do
	killed suspend "$n" $((n + 3 + n / 2)) || break
	is_whole
done
is_whole
expect_unharmed
for ((n = 3; ; n += 1 + n / 2)); do
	job_suspend
	killed resume "$n" $((n + 4)) || break
	is_whole
done
is_whole
expect_unharmed
job_end
