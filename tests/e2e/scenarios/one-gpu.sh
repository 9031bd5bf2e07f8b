# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# One GPU: dumped, gone, restored, goes on with the right data
# gpus: 1xmi100
# kernels: each

job_start --vram 2M
expect_verified
process_shape >"$work/shape"
dump
expect_no_objects
expect_images 1 1
generation=$(state_get "$job" generation)
restore
expect_state_above 30 generation "$generation"
job_goes
job_end
