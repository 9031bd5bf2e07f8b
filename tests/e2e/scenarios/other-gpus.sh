# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Restored on a machine with other gpu ids and render minors
# gpus: 2xmi100
# tier: all

machine_gpus >"$work/gpus-before"
job_start --vram 2M
job_returns machine_load 2xmi100-b
machine_gpus >"$work/gpus-after"
# The scenario is worth nothing when a GPU has the id or the minor of its counterpart.
while read -r id minor _ other_id other_minor _; do
	[ "$id" != "$other_id" ] && [ "$minor" != "$other_minor" ] ||
		fail "GPU $id, minor $minor has something in common with $other_id, $other_minor"
done < <(paste -d ' ' "$work/gpus-before" "$work/gpus-after")
while read -r _ minor _; do
	fds "${job_pids[0]}" | grep " /dev/dri/renderD$minor\$" >/dev/null ||
		fail "the restored process does not have /dev/dri/renderD$minor open"
done <"$work/gpus-after"
job_end
