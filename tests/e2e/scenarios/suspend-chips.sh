# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# GPUs of other kinds: MI300X as one and in partitions, MI210
# gpus: 1xmi300x
# tier: all
# kernels: each

on_chip() {
	local before
	pair=$1
	machine_load "$1"
	shift
	job_start "$@"
	expect_verified
	process_shape >"$work/shape"
	before=$(vram_used)
	job_suspend
	[ "$(vram_used)" -lt "$before" ] || fail "nothing was freed"
	job_resume
	job_goes
	job_end
	rm -f "$work/shape"
	printf 'ok - %s: %s\n' "${work##*/}" "$pair"
}

on_chip 1xmi300x --vram 2M --extra aql
on_chip 1xmi300x-cpx --vram 1M --extra aql
on_chip 2xmi210 --vram 2M --extra aql
