# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The GPUs are open, but there is no memory, queue or event
# gpus: 2xmi100

job_start --gpus none
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
