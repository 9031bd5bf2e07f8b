# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Two GPUs that write into each other's VRAM
# gpus: 2xmi100

job_start --vram 2M
process_shape >"$work/shape"
dump
expect_gone
expect_images 2 1
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
