# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# An assertion that fails in a kernel of a program on ROCm's HSA runtime is told by the runtime, also where it was caught before it and restored
# gpus: 2xmi100
# tier: all
# log: ttm_bo_release, the driver leaves the page with events pinned where a GPU has another id (asicsim/complaints)

# In each generation the kernel that stands still at the dump is let go and fails, and its queue is made anew, elsewhere.
gpujob=$hsajob
# The runtime tries to write a core file of the GPU, which fails here without criu, too.
job_may_say='Failed to fetch agents snapshot|GPU core dump failed'
job_start --assert "$top/build/gcn/failing.co"
for gpus in 2xmi100 2xmi100 2xmi100-b; do
	dump
	expect_no_objects
	machine_load "$gpus"
	restore
	expect_right
done
job_end
