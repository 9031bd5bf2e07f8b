# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The driver resets the GPU while a job is suspended: state and resume say so, a dump is refused, the memory comes back, and the job can end
# gpus: 1xmi100
# tier: all

job_start --vram 1M
pid=${job_pids[0]}
expect_verified
job_suspend
tool_run state "$pid"
! grep -q 'reset the GPU' "$work/tool.out" || fail "state tells of a reset: $(<"$work/tool.out")"
for file in /sys/kernel/debug/dri/*/amdgpu_gpu_recover; do
	timeout 60 cat "$file" >/dev/null || fail "the driver cannot be asked for a reset"
	break # the others are of the same GPU
done
wait_until 60 had_resets 1 || fail "the driver does not reset the GPU"
tool_run state "$pid"
grep -q 'reset the GPU of renderD' "$work/tool.out" || fail "state does not tell of the reset: $(<"$work/tool.out")"
dump_refused
grep -q "pid $pid: is suspended, and the driver has reset its GPU" "$work/$criu_runs"-*.log || fail "the dump does not tell of the reset: $(criu_errors)"
status=0
tool_run resume "$pid" || status=$?
[ "$status" -eq 3 ] || fail "resume ends with status $status: $(<"$work/tool.out")"
grep -q "pid $pid: runs again, but the driver has reset the GPU" "$work/tool.out" || fail "resume: $(<"$work/tool.out")"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
! grep -q '^State:.T' "/proc/$pid/status" || fail "the job does not run"
job_kill
expect_gone
expect_no_objects
