# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A dump leaves a process its own trap handler: an assertion that fails in a kernel that was caught before it is told
# gpus: 2xmi100
# kernels: each

# In each generation the kernel that stands still at the dump is let go and fails.
job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra assert
expect_progress
job_picture
for _ in 1 2; do
	if loses_stacks; then
		dump_refused
		expect_one_error "$no_stacks"
	else
		dump --leave-running
		grep -q 'a trap handler that ROCm has set is not saved' "$work/$criu_runs-dump.log" || fail "the dump does not say that the trap handler is lost"
	fi
	expect_unharmed
done
job_end
