# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# What a partner has, too, stays where it is: it is right on both sides, whoever is suspended; so does what a forked child has mapped, and what the process has an own dma-buf of; metadata come back
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
		tool_suspend "$pid"
		grep -q 'may be shared' "$work/tool.out" || fail "nothing is said of what stays: $(<"$work/tool.out")"
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

# stays CASE PROCESSES: with one dma-buf or mapping that would go on naming the old memory; all of it stays, and is right
stays() {
	pair=$1
	job_start "$1"
	job_picture
	vram=$(vram_used)
	for pid in "${job_pids[@]}" all; do
		[ "$pid" != all ] || pid=${job_pids[*]}
		# shellcheck disable=SC2086
		tool_suspend $pid
		[ "$(vram_used)" -eq "$vram" ] || fail "$(vram_used) bytes of VRAM are in use, not $vram as before: $(<"$work/tool.out")"
		# shellcheck disable=SC2086
		tool_run resume $pid || fail "resume: $(<"$work/tool.out")"
		expect_unharmed
	done
	tool_suspend "${job_pids[0]}"
	grep -q 'may be shared' "$work/tool.out" || fail "nothing is said of what stays: $(<"$work/tool.out")"
	tool_run resume "${job_pids[0]}" || fail "resume: $(<"$work/tool.out")"
	expect_unharmed
	job_end
	rm -f "$work/shape"
	shown "$1"
}

stays dmabuf-own
stays map-forked-vram

# Some of these have no handle any more.
pair=handles
job_start handles
expect_verified
process_shape >"$work/shape"
job_suspend
job_resume
job_goes
job_end
rm -f "$work/shape"
shown handles
