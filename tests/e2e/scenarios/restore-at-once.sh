# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Restores right after the dump, while the driver still takes the dead process down: the job keeps its GPU each time
# gpus: 2xmi100
# kernels: each
# tier: all
# seconds: 600

# machine_with_one, machine_with_two: GPUs. The job is begun where it sees one, and goes on beside another one.
machine_with_one() {
	machine_load 2xmi100 's/512M/256M/; s/^count.*/count = 1/; /^hive_id/d'
}

machine_with_two() {
	machine_load 2xmi100 's/512M/256M/'
}

# job_move ARG...: a job, on the first of two GPUs
job_move() {
	machine_with_one
	job_start "$@"
	dump
	expect_no_objects
	machine_with_two
	restore
}

chosen() {
	grep -qs 'becomes gpu' "$work/$((criu_runs + 1))-restore.log"
}

# round NUMBER ARG...: dumped and restored without a pause; slow engines are quick again when a GPU is chosen
round() {
	local watcher
	pair="round $1"
	dump_at_once "${@:2}"
	{ wait_until 60 chosen || true; gpus_state ok; } &
	watcher=$!
	restore
	wait "$watcher"
	grep -q 'becomes gpu .*(renderD128)' "$work/$criu_runs-restore.log" || fail "the job came back on another GPU"
}

job_end_well() {
	pair=
	expect_right
	job_end
	expect_no_objects
}

# Thousands of buffers, which the driver gives back one by one.
job_move --vram 3M --gtt 3M --userptr 3M --buffers 700
for n in 1 2 3 4 5; do round "$n"; done
job_end_well

# More than half of the VRAM, which is wiped by slow engines as soon as all is saved: by one, or from Linux 7 on by all eight.
buffers=40
! kernel_since 7 || buffers=320
job_move --vram 140M --buffers "$buffers" --gtt 2M --userptr 2M
read -r id _ < <(machine_gpus)
action_script "$work/slow" "echo $(printf %#x "$id") slow >$gpus_file"
rm -f "$loaded_file"
for n in 6 7 8 9 10; do round "$n" --action-script "$work/slow"; done
grep -q 'amdgpu_plugin: gpu .*: waited .* ms for room' "$work"/*-restore.log ||
	fail "no restore met memory that was still to be wiped"
job_end_well
