# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# SDMA rings that hang while contents are copied: the dump says so, the driver resets the GPU, and the next job is dumped and restored
# gpus: 1xmi100
# kernels: each
# tier: all

was_reset() {
	dmesg | sed '1,/e2e: scenario hang-copies$/d' | grep 'GPU reset.*succeeded' >/dev/null
}

job_start --vram 256K
gpus_state rings
dump_refused
expect_one_error 'the driver has reset the GPU of renderD'
wait_until 60 was_reset || fail "the driver does not reset the GPU"
expect_alive
kill -KILL "${job_pids[@]}"
expect_gone
expect_no_objects

job_start --vram 256K
process_shape >"$work/shape"
dump
expect_gone
restore
expect_verified
expect_shape "$work/shape"
job_end
