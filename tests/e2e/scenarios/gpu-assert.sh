# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# An assertion that fails in a kernel is told by the process' own trap handler and by the driver, also where the kernel was caught before it and restored
# gpus: 2xmi100

# In each generation the kernel that stands still at the dump is let go and fails.
job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra assert
expect_progress
job_picture
job_comes_back 2
job_returns machine_load 2xmi100-b
job_end
