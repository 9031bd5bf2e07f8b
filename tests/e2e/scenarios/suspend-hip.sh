# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Programs on HIP 6.4 and 7.2 are caught in a kernel and suspended in place, again and again
# gpus: 2xmi100
# userland: hip
# needs: build/interop/rocm/version, interop
# tier: all
# seconds: 900
# memory: 4096

# again TIMES: the job with its kernels, suspended and resumed so often
again() {
	local n
	rm -f "$work/shape"
	job_start --share nothing --kernels "$top/build/gcn/busy.co"
	process_shape >"$work/shape"
	for ((n = 0; n < $1; n++)); do
		job_suspend
		job_resume
		job_goes
	done
}

gpujob=$top/build/workloads/hipjob
machine_load 1xmi100
again 10
[[ $(state_get "$job" hip) == 6* ]] || fail "the job does not use HIP 6, but $(state_get "$job" hip)"
job_end

export LD_LIBRARY_PATH=$top/build/interop/rocm/usr/lib/x86_64-linux-gnu
again 2
[[ $(state_get "$job" hip) == 702* ]] || fail "the job does not use HIP 7.2, but $(state_get "$job" hip)"
job_end
unset LD_LIBRARY_PATH
