# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# MI300X on a driver that restores idle queues only: a dump waits for the kernels that run, and refuses what runs on
# gpus: 1xmi300x
# kernels: 7.3

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

# Half a second each. Most dumps come while one runs.
job_start "${small[@]}" --pace 600 --extra nap
job_picture
job_comes_back 3
job_end
grep -q 'for kernels to end$' "$work"/*-dump.log || fail "no dump has met a kernel"
expect_no_objects

job_start "${small[@]}" --extra wave
job_picture
KFD_IDLE_WAIT=1 dump_refused
expect_one_error "$no_stacks.*KFD_IDLE_WAIT=SECONDS waits longer"
grep -q 'for kernels to end: some still run' "$work/$criu_runs-dump.log" || fail "the dump has not waited"
expect_unharmed
job_kill
expect_gone
expect_no_objects
