# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A program on ROCm's HSA runtime, on one GPU, that copies in a loop
# gpus: 1xmi100
# kernels: each
# tier: all

gpujob=$hsajob
job_start
expect_verified
process_shape >"$work/shape"
dump
expect_gone
expect_no_objects
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
