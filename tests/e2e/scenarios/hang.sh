# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU whose queues do not stop: the dump says so, the driver resets the GPU, and the next job is dumped and restored
# gpus: 1xmi100
# kernels: each
# tier: all

job_start --vram 256K
gpus_state hang
dump_refused
expect_one_error 'cannot stop its GPU queues'
wait_until 60 driver_said 'GPU reset.*succeeded' || fail "the driver does not reset the GPU"
expect_alive
kill -KILL "${job_pids[@]}"
expect_gone
expect_no_objects

job_start --vram 256K
job_returns
job_end
