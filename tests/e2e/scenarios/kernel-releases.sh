# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Restored on GPUs with other ids, and with the ids of each other, under the rules of one kernel release after the other
# gpus: 2xmi100
# drivers: kfdsim, which behaves like several releases

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
	# Each becomes the other: which id the kernel wants cannot be seen from whether it maps.
	minors=($(machine_gpus | cut -d ' ' -f 2))
	dump
	expect_gone
	KFD_DEVICE_MAP=renderD${minors[0]}=renderD${minors[1]},renderD${minors[1]}=renderD${minors[0]} restore
	expect_verified
	expect_shape "$work/shape"
	expect_progress
	job_end
	expect_no_objects
done
