# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Parent and child, each with its own context on both GPUs
# gpus: 2xmi100
# kernels: each

job_start --children 1
process_shape >"$work/shape"
dump
expect_gone
expect_images 2 2
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
