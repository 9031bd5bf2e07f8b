# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# An assertion that fails in a kernel is told by the process' own trap handler and by the driver, also where the kernel was caught before it and restored
# gpus: 2xmi100
# kernels: each

# In each generation the kernel that stands still at the dump is let go and fails.
job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra assert
expect_progress
job_picture
if loses_stacks; then
	# The waves were saved by the trap handler and come back all the same.
	for _ in 1 2; do
		dump_refused
		expect_one_error "$no_stacks"
		expect_unharmed
	done
else
	job_comes_back 2
	job_returns machine_load 2xmi100-b
fi
job_end
