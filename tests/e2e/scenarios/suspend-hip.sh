# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Programs on HIP 6.4 and 7.2 are caught in a kernel and suspended in place, again and again; memory of hipMallocAsync and hipMemCreate
# gpus: 1xmi100
# userland: hip
# needs: build/interop/rocm/version, interop
# tier: all
# seconds: 1200
# memory: 4096

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"
gpujob=$top/build/workloads/hipjob
unset HSA_ENABLE_IPC_MODE_LEGACY

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

# virtual SHARING: hipMallocAsync and hipMemCreate of ROCm 7 take virtual memory (VMM): by the driver's own figure it is freed, and
# every byte is right at once when it is back
virtual() {
	local vram
	pair="--share $1 --virtual"
	job_start --share "$1" --virtual
	expect_verified
	process_shape >"$work/shape"
	vram=$(vram_used)
	for _ in 1 2; do
		job_suspend
		expect_vram_below $((vram - (75 << 20)))
		job_resume
		job_goes
		[ "$(vram_used)" -eq "$vram" ] || fail "$(vram_used) bytes of VRAM are in use, not $vram as before"
	done
	ends_clean "$pair"
	rm -f "$work/shape"
}

# virtual_stays: before Linux 6.18 handles are not listed, which is said
virtual_stays() {
	pair="--virtual, not listed"
	job_start --share nothing --virtual
	expect_verified
	tool_says 3 'VRAM of VMM .* is not freed: the kernel does not list .* before Linux 6.18' suspend "${job_pids[@]}"
	job_resume
	expect_right
	job_end
	expect_no_objects
	shown "$pair"
}

again 10
[[ $(state_get "$job" hip) == 6* ]] || fail "the job does not use HIP 6, but $(state_get "$job" hip)"
job_end

export LD_LIBRARY_PATH=$top/build/interop/rocm/usr/lib/x86_64-linux-gnu
again 2
[[ $(state_get "$job" hip) == 702* ]] || fail "the job does not use HIP 7.2, but $(state_get "$job" hip)"
job_end
if kernel_lists; then
	virtual nothing
	virtual vmm
else
	virtual_stays
fi
unset LD_LIBRARY_PATH
