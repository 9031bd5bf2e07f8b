# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Restored on a machine with other gpu ids, render minors and node numbers
# gpus: 2xmi100

machine_gpus >"$work/gpus-before"
job_start --vram 2M
process_shape >"$work/shape"
dump
expect_gone
expect_no_objects
machine_load 2xmi100-b
machine_gpus >"$work/gpus-after"
# The scenario is worth nothing when the machines have an id, a minor or a node in common.
for field in 1 2 3; do
	common=$(sort <(cut -d ' ' -f $field "$work/gpus-before") <(cut -d ' ' -f $field "$work/gpus-after") | uniq -d)
	[ -z "$common" ] || fail "both machines have $common in field $field of \"gpu_id minor node\""
done
restore
expect_verified
expect_shape "$work/shape"
while read -r _ minor _; do
	fds "${job_pids[0]}" | grep -q " /dev/dri/renderD$minor\$" ||
		fail "the restored process does not have /dev/dri/renderD$minor open"
done <"$work/gpus-after"
expect_progress
job_end
