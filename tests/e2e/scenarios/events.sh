# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The process sleeps in WAIT_EVENTS when it is dumped, and GPU events wake it afterwards
# gpus: 1xmi100

job_start --events --pace 2000 --vram 256K
process_shape >"$work/shape"
dump
expect_gone
restore
expect_progress
expect_verified
expect_shape "$work/shape"
job_end
