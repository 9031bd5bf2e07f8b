# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A thousand threads, a TCP connection, io_uring, a seccomp filter against what is injected, a user namespace; and the GPU's memory is another's when it is to come back
# gpus: 1xmi100-256m
# tier: all

crowd() {
	printf '#!/bin/sh\nexport %s\nexec env LD_PRELOAD=%s %s "$@"\n' "$*" "$top/build/workloads/crowd.so" "$top/build/workloads/gpujob" \
		>"$work/crowd"
	chmod 755 "$work/crowd"
	gpujob=$work/crowd
}

crowd CROWD_THREADS=1000
job_start --vram 64M
gpujob=$top/build/workloads/gpujob
[ "$(find "/proc/${job_pids[0]}/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1000 ] || fail "the job has too few threads"
process_shape >"$work/shape"
job_suspend
expect_vram_below 2097152

# Somebody else has the memory.
stranger_start --vram 220M
! tool_run resume "${job_pids[@]}" || fail "the job was resumed in memory that is another's"
grep -q 'too little memory free' "$work/tool.out" || fail "resume does not say why: $(<"$work/tool.out")"
tool_run state "${job_pids[@]}"
grep -q ': suspended since' "$work/tool.out" || fail "it is not suspended any more: $(<"$work/tool.out")"
"$top/build/amdgpu-checkpoint" resume --wait 100 "${job_pids[@]}" >"$work/waits.out" 2>&1 &
waits=$!
sleep 2
kill -0 "$waits" || fail "resume does not wait: $(<"$work/waits.out")"
stranger_end
wait "$waits" || fail "resume: $(<"$work/waits.out")"
expect_verified
expect_shape "$work/shape"
expect_progress
job_end

crowd CROWD_THREADS=3 CROWD_SECCOMP=1
job_start --vram 1M
gpujob=$top/build/workloads/gpujob
grep -q 'Seccomp:.2' "/proc/${job_pids[0]}/status" || fail "the job has no filter"
job_suspend
job_resume
expect_right
job_end
rm -f "$work/shape"

# In a user namespace of its own, where a dump is refused.
printf '#!/bin/sh\nexec unshare --user --map-root-user %s "$@"\n' "$top/build/workloads/gpujob" >"$work/crowd"
gpujob=$work/crowd
job_start --vram 1M
gpujob=$top/build/workloads/gpujob
[ "$(readlink "/proc/${job_pids[0]}/ns/user")" != "$(readlink /proc/self/ns/user)" ] || fail "the job is in no user namespace"
job_suspend
job_resume
expect_right
job_end
