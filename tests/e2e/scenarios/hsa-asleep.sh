# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A program that sleeps in a wait of ROCm's HSA runtime, while its copies wait in the GPUs
# gpus: 2xmi100
# tier: all

asleep() {
	[ "$(state_get "$job" phase)" = asleep ]
}

# in_ioctl: the main thread is inside ioctl(), which is 16: WAIT_EVENTS
in_ioctl() {
	local number
	read -r number _ <"/proc/${job_pids[0]}/syscall"
	[ "$number" = 16 ]
}

gpujob=$hsajob
job_start --asleep
wait_until 10 asleep || fail "the job is $(state_get "$job" phase), not asleep"
wait_until 10 in_ioctl || fail "the job does not sleep in the kernel"
generation=$(state_get "$job" generation)
process_shape >"$work/shape"
dump
expect_no_objects
states_blank
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
expect_alive
# It sleeps on, and writes nothing, until it is woken.
sleep 1
wait_until 10 in_ioctl || fail "the restored job does not sleep in the kernel"
! states_written || fail "the restored job does not sleep any more"
expect_shape "$work/shape"
kill -USR1 "${job_pids[0]}"
wait_until 60 states_written || fail "the restored job does not wake"
expect_state_above 60 generation "$generation"
expect_state_above 60 verifies 0
expect_verified
job_end
