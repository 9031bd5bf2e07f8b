# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A process ends while the criu that has restored it waits for the job: its memory is free, and the others are dumped again
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# As long as the KFD knows the process, it has its memory.
has_ended() {
	! alive "$1" && [ ! -e "/sys/class/kfd/kfd/proc/$1" ]
}

vram_kib() {
	cat /sys/class/drm/renderD*/device/mem_info_vram_used | awk '{ n += $1 / 1024 } END { printf "%d\n", n }'
}

vram_below() {
	[ "$(vram_kib)" -lt "$1" ]
}

# quits CASE: the last process ends after a restore
quits() {
	local last used
	pair=$1
	job_start "$1"
	dump
	restore_staying
	last=${job_pids[-1]}
	expect_verified
	used=$(vram_kib)
	kill -USR2 "$last"
	wait_until 10 has_ended "$last" || fail "process $last has not ended for the KFD"
	unset 'job_pids[-1]'
	wait_until 10 vram_below $((used - 60000)) ||
		fail "$(vram_kib) KiB of VRAM are in use, $used before one of the processes ended"
	process_shape >"$work/shape"
	goes_twice
	expect_no_objects
	shown "$1"
}

quits quits
! kernel_lists || quits quits-kept
