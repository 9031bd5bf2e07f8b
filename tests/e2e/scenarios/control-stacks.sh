# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A compute queue that is stopped in a kernel goes on in it; where the driver saves no control stack, idle ones alone do
# gpus: 1xmi100
# kernels: each

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

idle_comes_back() {
	job_start "${small[@]}" --extra aql
	job_picture
	job_comes_back 2
	job_end
}

# in_kernel LEFT_OUT: whether the driver saves no control stacks
in_kernel() {
	job_start "${small[@]}" --extra wave
	job_picture
	if [ -z "$1" ]; then
		job_comes_back
		job_end
		expect_no_objects
		return
	fi
	"$top/build/amdgpu-checkpoint" doctor >"$work/doctor" || fail "doctor calls it a problem"
	grep -q '^warning  *gpu .* can be restored only while they run no kernel: ' "$work/doctor" ||
		fail "doctor does not say that a kernel must not run"
	"$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >"$work/check" || fail "check calls it a problem"
	grep -q 'refused while they run a kernel: ' "$work/check" || fail "check does not say that a kernel must not run"
	dump_refused
	expect_one_error 'this driver saves no control stacks, and the queue was stopped in a kernel'
	expect_unharmed
	KFD_RESTORABLE_CHECK=0 dump
	restore_refused
	expect_one_error '1 queues were stopped in kernels whose control stacks are not in the image'
}

# Known of these releases; of others the first dump has noticed it.
idle_comes_back
left_out=
case $(uname -r) in
6.12*) ;;
7.2.12* | 7.2.13*) left_out=1 ;;
*) ! grep -qs 'the driver left out' "$work"/*-dump.log || left_out=1 ;;
esac
in_kernel "$left_out"
