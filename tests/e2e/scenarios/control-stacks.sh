# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A compute queue that is stopped in a kernel goes on in it; where the driver saves no control stack, idle ones alone do
# gpus: 1xmi100

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

left_out() {
	grep -q 'left out .* bytes of control stacks' "$work/$criu_runs-dump.log"
}

job_start "${small[@]}" --extra aql
job_picture
saved=1
for _ in 1 2; do
	dump
	expect_gone
	! left_out || saved=
	restore
	expect_unharmed
done
job_end

job_start "${small[@]}" --extra wave
job_picture
if [ "$saved" ]; then
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
