# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# /dev/kfd is open twice, which is one process to the kernel
# gpus: 2xmi100
# tier: all
# kernels: each

job_start --vram 512K --reopen kfd
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
