# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Dumped twice while it goes on, beside a stranger's job on the same GPU; then killed, and the second image restored
# gpus: 1xmi100
# kernels: each

job_start
process_shape >"$work/shape"
"$gpujob" --state "$work/stranger" --seed 2 --background >"$work/stranger.start" 2>&1 || fail "no second job: $(<"$work/stranger.start")"
for _ in 1 2; do
	dump --leave-running
	expect_progress
	expect_verified
	expect_shape "$work/shape"
done
kill -KILL "$(state_get "$work/stranger" pid)"
generation=$(state_get "$job" generation)
job_kill
expect_gone
expect_no_objects
restore
# Back at the time of the dump.
[ "$(state_get "$job" generation)" -le "$generation" ] || fail "the restored job is ahead of the killed one"
expect_progress
expect_verified
expect_shape "$work/shape"
job_end
