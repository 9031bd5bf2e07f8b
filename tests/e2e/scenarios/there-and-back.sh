# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Second generation: moved to other GPUs, dumped there, and brought back
# gpus: 2xmi100

job_start
process_shape >"$work/shape"
for machine in 2xmi100-b 2xmi100; do
	dump
	expect_gone
	expect_no_objects
	machine_load "$machine"
	restore
	expect_verified
	expect_shape "$work/shape"
	expect_progress
done
job_end
