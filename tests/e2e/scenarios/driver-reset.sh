# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU that hangs, or whose copies hang, while a job is restored, and which the driver then resets: the job is right, or it is not there
# gpus: 1xmi100
# kernels: each
# tier: all

nr_resets() {
	dmesg | sed '1,/e2e: scenario driver-reset$/d' | grep -c 'GPU reset.*succeeded' || true
}

had_resets() {
	[ "$(nr_resets)" -ge "$1" ]
}

job_start --vram 1M
process_shape >"$work/shape"
dump
expect_no_objects

resets=0
for state in hang rings; do
	gpus_state "$state"
	states_blank
	if criu_call restore -d; then
		job_goes
		job_end
		echo "# $state: restored while the GPU was reset"
	else
		echo "# $state: refused while the GPU was reset"
		expect_gone
		expect_no_objects
	fi
	wait_until 60 had_resets $((resets + 1)) || fail "$state: the driver does not reset the GPU"
	resets=$(nr_resets)
done

restore
job_goes
job_end
