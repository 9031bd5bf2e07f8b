# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A restore that fails at any step leaves no process, and says once what failed
# gpus: 2xmi100
# tier: all

job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 4
dump

# fails PATTERN FAULT
fails() {
	faults "$2"
	restore_refused
	faults
	expect_one_error "$1"
}

fails 'cannot restore the GPU state of pid .*: Cannot allocate memory' 'kfd:CRIU_OP 1 ENOMEM'
fails 'cannot open /dev/kfd: ' 'kfd:open 1 EIO'
fails 'importing the dma-buf: Cannot allocate memory' 'drm:PRIME_FD_TO_HANDLE 1 ENOMEM'
fails 'cannot resume its GPU queues: Input/output error' 'kfd:CRIU_OP 2 EIO'
fails 'waiting for the GPU: ' 'drm:WAIT_CS 1 EIO'

# Machines that are not as good.
gpus-load none >"$work/none.log" 2>&1
restore_refused
[ -s "$images/inventory.img" ] || fail "the dump left no inventory"
# criu before 4.1 does not note which plugins an image needs.
! grep -q amdgpu_plugin "$images/inventory.img" || expect_one_error 'there is no /dev/kfd'

# says TEXT: the plugin's error line
says() {
	restore_refused
	grep -q "Error (amdgpu_plugin): .*$1" "$work/$criu_runs-restore.log" || fail "no word of \"$1\": $(criu_errors)"
}
machine_load 1xmi100
says '2 saved GPUs'
machine_load 2xmi100 's/^vram_size.*/vram_size = 256M/'
says 'vram_size'

machine_load 2xmi100
restore
expect_verified
job_end
