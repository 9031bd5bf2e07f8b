# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016
# A criu that is killed during a dump leaves the GPU queues stopped; amdgpu-checkpoint lets them run, and nobody else's
# gpus: 2xmi100

tool=$top/build/amdgpu-checkpoint

# resumed STATUS PATTERN: of amdgpu-checkpoint, for the job
resumed() {
	local got=0
	"$tool" resume "${job_pids[0]}" >"$work/resume.out" 2>&1 || got=$?
	[ "$got" -eq "$1" ] || fail "amdgpu-checkpoint ended with status $got, not $1: $(<"$work/resume.out")"
	grep -q "$2" "$work/resume.out" || fail "amdgpu-checkpoint does not say \"$2\": $(<"$work/resume.out")"
}

queues_stand() {
	local generation
	generation=$(state_get "$job" generation)
	sleep 1
	[ "$(state_get "$job" generation)" = "$generation" ]
}

job_start --vram 256K --gtt 64K --userptr 64K
job_picture
resumed 0 'were not stopped'
expect_unharmed

# While criu has the job, its queues are left alone.
dump_killed "$tool resume ${job_pids[0]} >$work/traced.out 2>&1"
grep -q 'Operation not permitted' "$work/traced.out" || fail "a dump that goes on was disturbed: $(<"$work/traced.out")"
wait_until 20 queues_stand || fail "the queues run, though criu was killed"

resumed 0 'were stopped and run again'
resumed 0 'were not stopped'
expect_unharmed
job_comes_back
job_end
