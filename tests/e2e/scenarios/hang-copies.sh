# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Copies that hang in a dump until the driver resets the GPU: the dump is refused, and the next job is dumped and restored
# gpus: 1xmi100
# kernels: each
# tier: all

job_start --vram 256K
gpus_state rings
dump_refused
expect_one_error 'the driver has reset the GPU of renderD'
driver_said 'GPU reset.*succeeded' || fail "the driver has not reset the GPU"
expect_alive
kill -KILL "${job_pids[@]}"
expect_gone
expect_no_objects

job_start --vram 256K
job_returns
job_end
