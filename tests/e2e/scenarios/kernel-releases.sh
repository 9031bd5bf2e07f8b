# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Restored on GPUs with other ids, under the rules of one kernel release after the other
# gpus: 2xmi100

for release in 6.1 7.3; do
	rules=$release
	machine_load 2xmi100
	job_start --events --vram 1M
	process_shape >"$work/shape"
	dump
	expect_gone
	expect_no_objects
	machine_load 2xmi100-b
	restore
	expect_verified
	expect_shape "$work/shape"
	expect_progress
	job_end
	expect_no_objects
done
