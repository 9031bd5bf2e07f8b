# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What a job says that it does not need is not saved: zeros after a restore and after a resume, as it was after a dump that leaves it running
# gpus: 1xmi100
# tier: all

# expect_discarded TIMES: so often the job has found zeros
expect_discarded() {
	job_goes
	[ "$(state_get "$job" discarded)" = "$1" ] || fail "memory was discarded $(state_get "$job" discarded) times, want $1"
}

job_start --extra discard
process_shape >"$work/shape"
dump --leave-running
grep -q "does not need 32568 bytes" "$work/1-dump.log" || fail "the log does not say how much was not saved"
expect_discarded 0
dump
expect_no_objects
restore
expect_discarded 1
dump
restore
expect_discarded 2
job_suspend
job_resume
expect_discarded 3
job_end
