# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A compute queue that is stopped in a kernel goes on in it; where the driver cannot restore that, a dump waits for the kernel
# gpus: 1xmi100
# kernels: each

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

idle_comes_back() {
	job_start "${small[@]}" --extra aql
	job_picture
	job_comes_back 2
	job_end
}

in_kernel() {
	job_start "${small[@]}" --extra wave
	job_picture
	if ! loses_stacks; then
		job_comes_back
		job_end
		expect_no_objects
		return
	fi
	"$top/build/amdgpu-checkpoint" doctor >"$work/doctor" || fail "doctor calls it a problem"
	grep -q '^warning  *gpu .* can be restored when their kernels have ended: ' "$work/doctor" ||
		fail "doctor does not say that a kernel must not run"
	! "$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >"$work/check" || fail "check says that it would be dumped"
	grep -qE "$no_stacks" "$work/check" || fail "check does not say why not: $(tail -n 3 "$work/check")"
	KFD_IDLE_WAIT=1 dump_refused
	expect_one_error "$no_stacks"
	grep -q 'for kernels to end: some still run' "$work/$criu_runs-dump.log" || fail "the dump has not waited"
	expect_unharmed
	KFD_RESTORABLE_CHECK=0 dump
	restore_refused
	expect_one_error '1 queues were stopped in kernels whose control stacks are not in the image'
}

# Half a second each. Most dumps come while one runs.
kernels_that_end() {
	job_start "${small[@]}" --pace 600 --extra nap
	job_picture
	job_comes_back 4
	job_end
	! loses_stacks || grep -q 'for kernels to end$' "$work"/*-dump.log || fail "no dump has met a kernel"
}

# The first dump has noticed of a driver that is not known whether it saves them.
idle_comes_back
kernels_that_end
in_kernel
