# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Restores right after the dump, while the driver still takes the dead process down: the job keeps its GPU each time
# gpus: 2xmi100
# seconds: 600
# drivers: amdgpu, which gives memory back later than the process ends

# The job sees one GPU, also where there are two. It has more than half of the VRAM.
machine_load 2xmi100 's/512M/256M/; s/^count.*/count = 1/; /^hive_id/d'
job_start --vram 140M --buffers 40 --gtt 64K --userptr 64K
dump
expect_gone
expect_no_objects
machine_load 2xmi100 's/512M/256M/'
restore
read -r id _ < <(machine_gpus)
# Called when everything is saved: the memory is wiped by slow engines then.
printf '#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != post-dump ] || echo %#x slow >%s\n' "$id" "$gpus_file" >"$work/slow"
chmod 755 "$work/slow"
for ((round = 1; round <= 10; round++)); do
	pair="round $round"
	if ((round % 2)); then dump --action-script "$work/slow"; else dump; fi
	restore
	gpus_state ok
	grep -q 'becomes gpu .*(renderD128)' "$work/$criu_runs-restore.log" || fail "the job came back on another GPU"
done
pair=
grep -q 'amdgpu_plugin: gpu .*: waited .* ms for room' "$work"/*-restore.log ||
	fail "no restore met memory that was still to be wiped"
expect_verified
expect_progress
job_end
