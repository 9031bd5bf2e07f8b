# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# After a dump that the job survives, it and another job on the GPU make, free and export buffers, and each export is right
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# expect_other_goes: the job that is not dumped has its own memory
expect_other_goes() {
	local job=$work/other job_pids=("${other_pids[@]}")
	expect_right
}

# expect_dump: with the objects listed it succeeds
expect_dump() {
	if kernel_lists; then
		dump --leave-running
	else
		dump_refused --leave-running
		expect_one_error '6\.18'
	fi
	job_goes
}

for case in later later-ipc 'later-mesh --processes 8'; do
	pair=$case
	# shellcheck disable=SC2086
	job_start $case
	process_shape >"$work/shape"
	expect_dump
	expect_dump
	ends_clean "$case, dumped twice"
done

comes_back render-freed

# The other job's buffers show in debugfs only, wherever that is mounted.
pair='two jobs'
job=$work/other
job_start later
other_pids=("${job_pids[@]}")
job=$work/job
job_start later
process_shape >"$work/shape"
mount -t tmpfs hidden /sys/kernel/debug
expect_dump
umount /sys/kernel/debug
expect_other_goes
expect_dump
expect_other_goes
if kernel_lists; then
	dump
	expect_other_goes
	# The GPUs of the same ids are in use, and others are idle.
	"$top/build/amdgpu-checkpoint" match "$images" >"$work/match" || fail "amdgpu-checkpoint match: $(tail -n 1 "$work/match")"
	restore
	# A restored process has another place for mappings that it makes: those of this job are new after each check.
	expect_shape "$work/shape"
	expect_right
fi
job_end
expect_other_goes
job=$work/other job_pids=("${other_pids[@]}")
job_end
expect_no_objects
shown 'two jobs on one GPU'
