# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU that hangs, or whose copies hang, while a job is restored, and which the driver then resets: the job is right, or it is not there
# gpus: 1xmi100
# kernels: each
# tier: all

job_start --vram 1M
process_shape >"$work/shape"
dump
expect_no_objects

nr=0
for state in hang rings; do
	nr=$((nr + 1))
	gpus_state "$state"
	states_blank
	if criu_call restore -d; then
		wait_until 30 states_written || fail "$state: the restored job does not compute"
		job_goes
		job_end
		echo "# $state: restored while the GPU was reset"
	else
		echo "# $state: refused while the GPU was reset"
		expect_gone
		expect_no_objects
	fi
	wait_until 60 had_resets "$nr" || fail "$state: the driver does not reset the GPU"
done

restore
job_goes
job_end
