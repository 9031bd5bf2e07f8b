# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What the driver itself refuses: a file for a dma-buf, room in VRAM, a queue that is taken
# gpus: 1xmi100-256m
# kernels: each
# tier: all

# The driver's lists of what is alive, but for memory, of which a running job may free some later.
objects_alive() {
	grep -v _kib "$objects_file"
}

objects_are_the_others() {
	objects_alive | cmp -s "$work/objects" -
}

# no_restore PATTERN: refused, and the plugin says why; neither a process nor an object in the driver is left of it
no_restore() {
	objects_alive >"$work/objects"
	! criu_call restore -d || fail "criu restore succeeded, but it should have refused"
	expect_gone
	grep -q "Error (amdgpu_plugin): .*$1" "$work/$criu_runs-restore.log" || fail "no word of \"$1\": $(criu_errors)"
	wait_until 20 objects_are_the_others ||
		fail "objects differ after the refused restore: $(objects_alive | diff "$work/objects" - | tr '\n' ' ')"
}

# CHECKPOINT ends in the middle of its dma-bufs: criu cannot allow itself more files than it was given.
job_start --vram 1M --buffers 200 --extra aql
job_picture
most=$(</proc/sys/fs/nr_open)
files=$(ulimit -n)
echo 256 >/proc/sys/fs/nr_open
ulimit -n 256
dump_refused
echo "$most" >/proc/sys/fs/nr_open
ulimit -n "$files"
expect_one_error 'Too many open files'
expect_unharmed
dump
expect_no_objects
restore
expect_unharmed
job_end

job_start --vram 128M
process_shape >"$work/shape"
dump
expect_no_objects

stranger_start --vram 128M
no_restore 'free VRAM, wanted at least [0-9]* MiB'
KFD_VRAM_SIZE_CHECK=0 no_restore 'cannot restore the GPU state of pid .*: Cannot allocate memory'
stranger_end

stranger_start --vram 64K
no_restore 'Device or resource busy (another process holds an SDMA queue'
stranger_end
expect_no_objects

restore
job_goes
job_end
