# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Parent on the first GPU, child on the second
# gpus: 2xmi100
# tier: all

job_start --children 1 --split
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
