# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Every render node is open twice, one of them without a use: the second one, or the first
# gpus: 2xmi100
# tier: all

for order in render render-first; do
	job_start --vram 512K --reopen "$order"
	process_shape >"$work/shape"
	dump
	expect_gone
	restore
	expect_verified
	expect_shape "$work/shape"
	expect_progress
	job_end
done
