# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU that hangs while a job is restored, and which the driver then resets: the job is right, or it is not there
# gpus: 1xmi100
# kernels: each
# tier: all

job_start --vram 1M
process_shape >"$work/shape"
dump
expect_no_objects

gpus_state hang
states_blank
if criu_call restore -d; then
	job_goes
	job_end
	echo '# restored while the GPU was reset'
else
	echo '# refused while the GPU was reset'
	expect_gone
	expect_no_objects
fi
wait_until 60 driver_said 'GPU reset.*succeeded' || fail "the driver does not reset the GPU"

restore
job_goes
job_end
