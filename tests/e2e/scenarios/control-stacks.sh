# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A compute queue that is stopped in a kernel goes on in it; where the driver saves no control stack, idle ones alone do
# gpus: 1xmi100

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

# stacks_left_out: whether the driver has not saved them at the last dump, as that of Linux 7.2.12
stacks_left_out() {
	grep -q 'left out .* bytes of control stacks' "$work/$criu_runs-dump.log"
}

# Sets left_out.
idle_comes_back() {
	job_start "${small[@]}" --extra aql
	job_picture
	left_out=
	for _ in 1 2; do
		dump
		expect_gone
		! stacks_left_out || left_out=1
		restore
		expect_unharmed
	done
	job_end
}

in_kernel() {
	job_start "${small[@]}" --extra wave
	job_picture
	if [ -z "$left_out" ]; then
		dump
		expect_gone
		restore
	else
		dump_refused
		expect_one_error 'this driver saves no control stacks, and the queue was stopped in a kernel'
	fi
	expect_unharmed
	job_end
	expect_no_objects
}

idle_comes_back
in_kernel
if [ -e /sys/module/kfdsim ]; then
	rules=7.2.12 machine_load 1xmi100
	idle_comes_back
	[ "$left_out" ] || fail "Linux 7.2.12 saves no control stacks"
	in_kernel
fi
