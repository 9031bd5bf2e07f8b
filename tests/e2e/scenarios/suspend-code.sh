# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A kernel of real code is caught in the middle; ROCm's HSA runtime, awake and asleep
# gpus: 2xmi100
# tier: all

asleep() {
	[ "$(state_get "$job" phase)" = asleep ]
}

job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra code
expect_progress
job_picture
for n in 1 2; do
	job_suspend
	job_resume
	expect_unharmed
done
job_end
rm -f "$work/shape"

gpujob=$hsajob
job_start
process_shape >"$work/shape"
for n in 1 2; do
	job_suspend
	job_resume
	job_goes
done
job_end

job_start --asleep
wait_until 10 asleep || fail "the job is $(state_get "$job" phase), not asleep"
process_shape >"$work/shape"
job_suspend
sleep 1
job_resume
sleep 1
asleep || fail "the resumed job does not sleep any more"
generation=$(state_get "$job" generation)
kill -USR1 "${job_pids[0]}"
expect_state_above 60 generation "$generation"
expect_verified
expect_shape "$work/shape"
job_end
