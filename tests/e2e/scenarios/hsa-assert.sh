# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A dump leaves ROCm's HSA runtime its trap handler: it tells of an assertion that fails in a kernel that was caught before it
# gpus: 2xmi100
# tier: all

# In each generation the kernel that stands still at the dump is let go and fails, and its queue is made anew.
gpujob=$hsajob
# The runtime tries to write a core file of the GPU, which fails here without criu, too.
job_may_say='Failed to fetch agents snapshot|GPU core dump failed'
job_start --assert "$top/build/gcn/failing.co"
for _ in 1 2; do
	dump --leave-running
	expect_right
done
# The runtime has left the KFD's debugger on its own process, so that its shutdown waits for ever, without criu too.
job_kill
