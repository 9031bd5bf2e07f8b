# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# What a partner has, too, stays where it is: it is right on both sides, whoever is suspended
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

for case in ipc ipc-far; do
	pair=$case
	job_start "$case"
	expect_verified
	process_shape >"$work/shape"
	for pid in "${job_pids[@]}"; do
		tool_run suspend "$pid" || fail "suspend: $(<"$work/tool.out")"
		grep -q 'others may have it' "$work/tool.out" || fail "nothing is said of what stays: $(<"$work/tool.out")"
		tool_run resume "$pid" || fail "resume: $(<"$work/tool.out")"
		job_goes
	done
	job_suspend
	job_resume
	job_goes
	job_end
	rm -f "$work/shape"
	shown "$case"
done
