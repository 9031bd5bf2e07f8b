# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A restore right after the dump, while the driver still takes the dead process down: the job keeps its GPU each time
# gpus: 2xmi100
# seconds: 500

machine_load 2xmi100 's/^count.*/count = 1/; /^hive_id/d'
job_start --vram 2M --buffers 300 --gtt 0 --userptr 0
dump
expect_gone
expect_no_objects
machine_load 2xmi100
restore
grep 'becomes gpu' "$work/$criu_runs-restore.log" | sed 's/.*becomes gpu//' >"$work/gpu"
for ((round = 1; round <= 3; round++)); do
	pair="round $round"
	dump
	echo "$EPOCHREALTIME $(ls /sys/class/kfd/kfd/proc) $(cat /sys/bus/pci/devices/0000:c*/mem_info_vram_used|tr '\n' ' ')" >>"$work/1-polls.log"
	restore
	grep 'becomes gpu' "$work/$criu_runs-restore.log" | grep -qFf "$work/gpu" || fail "the job came back on another GPU"
done
pair=
expect_verified
expect_progress
job_end
