# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A GPU of eight XCCs as one partition, as eight and as two, whose queues are of their place
# gpus: 1xmi300x
# kernels: each
# seconds: 300
# log: XCC 1 has no MQD, a state of the first XCC alone is restored to show what it is

job_of() {
	job_start "${small[@]}" "$@"
	job_picture
}

elsewhere='s/^name/pci = 0000:c3:00.0\ndrm_render_minor = 140\n&/'

# The driver saves the state of one XCC.
first_xcc_alone() {
	job_of --extra aql
	dump_refused
	expect_one_error '8 XCCs have 16384'
	expect_unharmed
	KFD_RESTORABLE_CHECK=0 dump
	states_blank
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	wait_until 30 driver_said 'XCC 1 has no MQD' || fail "the restored queue has the state of all XCCs"
	kill -KILL "${job_pids[@]}"
	expect_gone
	expect_no_objects
}

# It saves that of all, and restores what looks like that of one; the control stacks are not saved.
all_xccs() {
	job_of --extra aql --children 1
	dump --leave-running
	expect_unharmed
	job_comes_back 3
	dump
	machine_load 1xmi300x "$elsewhere"
	restore
	expect_unharmed
	job_end
	expect_no_objects
	job_of --extra wave
	dump_refused
	expect_one_error 'saves no control stacks, and the queue was stopped in a kernel'
	expect_unharmed
	job_end
}

case $(uname -r) in
6.12.*) first_xcc_alone ;;
*) all_xccs ;;
esac

# Where RESTORE of a compute queue would write behind its buffer (before 7.3), it is refused whatever is set and saved it. The chip
# looks after each such buffer: what the driver has overwritten is a warning in the kernel's log.
machine_load 1xmi300x-cpx
extra=(--extra aql)
case $(uname -r) in
6.12.* | 7.3.*) ;;
*)
	job_of --gpus 2 "${extra[@]}"
	KFD_RESTORABLE_CHECK=0 dump_refused
	expect_one_error 'has a queue on gpu .*overwrites memory of the kernel'
	expect_unharmed
	mount -t tmpfs version /sys/module/amdgpu
	echo 7.3.0 >/sys/module/amdgpu/version
	dump
	umount /sys/module/amdgpu
	KFD_RESTORABLE_CHECK=0 restore_refused
	expect_one_error 'has a queue on gpu .*overwrites memory of the kernel'
	extra=() ;;
esac

# A queue's doorbell goes by the partition's place in the GPU.
job_of --gpus 2 "${extra[@]}"
dump
KFD_DEVICE_MAP=renderD130=renderD133 restore_refused
grep -q 'Error (amdgpu_plugin): .*partition_of_sdma_queues, wanted 2' "$work/$criu_runs-restore.log" ||
	fail "another place is not refused for its doorbells: $(criu_errors)"
machine_load 1xmi300x-cpx "$elsewhere"
restore
expect_unharmed
job_end
expect_no_objects

# Partitions of four XCCs.
machine_load 1xmi300x-cpx 's/CPX/DPX/'
job_of --gpus 1 --extra aql
case $(uname -r) in
7.3.*)
	job_comes_back
	dump
	machine_load 1xmi300x-cpx "s/CPX/DPX/; $elsewhere"
	restore
	expect_unharmed ;;
*)
	dump_refused
	expect_one_error '4 XCCs have\|overwrites memory of the kernel'
	expect_unharmed ;;
esac
job_end
