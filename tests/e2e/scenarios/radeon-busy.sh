# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Queues of gfx11 that are in a kernel: saved when it ends while the process stands still, else refused, and the job goes on
# tier: all
# gpus: 1xnavi31

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

job_start "${small[@]}" --pace 600 --extra nap
job_picture
job_comes_back 2
job_end
expect_no_objects

job_start "${small[@]}" --extra wave
job_picture
for check in 1 0; do
	KFD_RESTORABLE_CHECK=$check dump_refused
	expect_one_error 'a queue of gfx11 is saved between kernels only: dump again when the GPU is idle'
	expect_unharmed
done
! "$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >"$work/check.out" 2>&1 || fail "check says that it would be dumped"
grep -q '^problem  dump: .*between kernels only' "$work/check.out" || fail "check does not say why: $(tail -n 3 "$work/check.out")"
expect_unharmed
job_kill
expect_gone
expect_no_objects
