# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The process sleeps in WAIT_EVENTS when it is dumped, and GPU events wake it afterwards
# gpus: 1xmi100
# kernels: each

# sleeps: in ioctl(WAIT_EVENTS)
sleeps() {
	grep -q '^16 0x[0-9a-f]* 0xc0184b0c ' "/proc/${job_pids[0]}/syscall"
}

job_start --events --pace 2000 --vram 256K
process_shape >"$work/shape"
# Then it has nearly two seconds to sleep.
expect_progress
wait_until 10 sleeps || fail "the process does not sleep in WAIT_EVENTS: $(<"/proc/${job_pids[0]}/syscall")"
job_returns
job_end
