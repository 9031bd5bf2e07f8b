# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Dumped twice while it goes on, beside a stranger's job on the same GPU; then killed, and the second image restored
# gpus: 1xmi100
# kernels: each

job_start
process_shape >"$work/shape"
stranger_start --seed 2
for _ in 1 2; do
	dump --leave-running
	job_goes
done
stranger_end
generation=$(state_get "$job" generation)
job_kill
expect_gone
expect_no_objects
restore
# Back at the time of the dump.
[ "$(state_get "$job" generation)" -le "$generation" ] || fail "the restored job is ahead of the killed one"
job_goes
job_end
