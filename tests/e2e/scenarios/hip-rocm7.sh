# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on HIP of ROCm 7.2 that share memory by hipIpc and by virtual memory
# gpus: 2xmi100
# userland: hip
# needs: build/interop/rocm/version, interop
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$top/build/workloads/hipjob
unset HSA_ENABLE_IPC_MODE_LEGACY
export LD_LIBRARY_PATH=$top/build/interop/rocm/usr/lib/x86_64-linux-gnu
# It maps what it allocates on all GPUs by virtual memory. Linux 7.2 does not import VRAM within a hive, and Debian's kernels
# give no access outside of one.
machine_load 1xmi100
# This runtime leaves a handle behind for each export.
comes_back_if_listed --share ipc
[[ $(state_get "$job" hip) == 702* ]] || fail "the job does not use HIP 7.2, but $(state_get "$job" hip)"
comes_back_if_listed --share vmm
# hipMallocAsync of ROCm 7 takes virtual memory unless it is told not to.
if ! kernel_lists; then
	stays '6\.18' --share nothing
	export DEBUG_HIP_MEM_POOL_VMHEAP=0
	comes_back --share nothing
	unset DEBUG_HIP_MEM_POOL_VMHEAP
fi
unset LD_LIBRARY_PATH
