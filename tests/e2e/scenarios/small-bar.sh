# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU of another generation (gfx10) of whose VRAM the CPU sees only a part
# gpus: 1xnavi
# drivers: kfdsim, which has other kinds of GPUs

job_start --vram 3M
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
expect_progress
job_end
