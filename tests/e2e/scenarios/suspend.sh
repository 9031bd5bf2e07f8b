# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Suspend in place: the GPU's memory is free, another job uses it, and the first one goes on with every byte of its own
# gpus: 1xmi100-256m
# kernels: each

job_start --vram 140M
expect_verified
vram=$(vram_used)
process_shape >"$work/shape"
stranger_refused --vram 140M
job_suspend
expect_vram_below 2097152
stranger_start --vram 140M
stranger_end
job_resume
expect_shape "$work/shape"
expect_progress
expect_verified
[ "$(vram_used)" -eq "$vram" ] || fail "$(vram_used) bytes of VRAM are in use, not $vram as before"
job_suspend
job_resume
expect_progress
job_end
