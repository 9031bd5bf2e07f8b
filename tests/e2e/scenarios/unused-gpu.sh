# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Two GPUs are open, only the second has memory and queues
# gpus: 2xmi100

job_start --gpus 1 --vram 1M
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
