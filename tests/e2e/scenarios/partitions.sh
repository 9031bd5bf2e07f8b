# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A GPU of eight XCCs as one partition and as eight, whose queues are of their place
# gpus: 1xmi300x
# drivers: amdgpu, whose partitions are what the driver makes of a GPU

job_of() {
	job_start --vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4 --extra aql "$@"
	job_picture
}

chip_said() {
	dmesg | sed '1,/e2e: scenario partitions$/d' | grep -q "$1"
}

# The driver saves or restores the state of one XCC.
job_of
dump_refused
expect_one_error '8 XCCs have 16384\|several XCCs'
expect_unharmed
KFD_RESTORABLE_CHECK=0 dump
expect_gone
case $(uname -r) in
6.12.*)
	states_blank
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	wait_until 30 chip_said 'XCC 1 has no MQD' || fail "the restored queue has the state of all XCCs"
	kill -KILL "${job_pids[@]}" ;;
*)
	restore_refused
	expect_one_error 'cannot restore the GPU state' ;;
esac
expect_gone
expect_no_objects

# A queue's doorbell goes by the partition's place in the GPU.
machine_load 1xmi300x-cpx
job_of --gpus 2
dump
expect_gone
KFD_DEVICE_MAP=renderD130=renderD133 restore_refused
grep -q 'Error (amdgpu_plugin): *partition_of_sdma_queues, wanted 2' "$work/$criu_runs-restore.log" ||
	fail "another place is not refused for its doorbells: $(criu_errors)"
machine_load 1xmi300x-cpx 's/^name/pci = 0000:c3:00.0\ndrm_render_minor = 140\n&/'
restore
expect_unharmed
job_end
