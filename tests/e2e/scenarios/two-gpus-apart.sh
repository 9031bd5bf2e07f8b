# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two GPUs of which none imports the other's VRAM: each copies its own, here and on other GPUs
# gpus: 2xmi100
# kernels: 7.2

job_start --vram 1M
process_shape >"$work/shape"
for machine in 2xmi100 2xmi100-b; do
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
