# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU whose queues do not stop, or whose copies hang: the dump says so, the driver resets the GPU, and the next job is dumped and restored
# gpus: 1xmi100
# kernels: each

# hangs NUMBER STATE ERROR: the NUMBER-th reset
hangs() {
	job_start --vram 256K
	gpus_state "$2"
	dump_refused
	expect_one_error "$3"
	# After a reset in the dump, Linux 7.2 ends the process.
	driver_said 'VRAM is lost' || expect_alive
	wait_until 60 had_resets "$1" || fail "$2: the driver does not reset the GPU"
	job_kill
	expect_gone
	expect_no_objects
}

# Where the driver itself stops the queues first, the dump sees the reset that follows.
hangs 1 hang 'cannot stop its GPU queues\|the driver has reset the GPU of renderD'
hangs 2 rings 'the driver has reset the GPU of renderD'

job_start --vram 256K
job_returns
job_end
