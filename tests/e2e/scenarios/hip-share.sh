# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on HIP 6.4 that share memory by hipIpc and by virtual memory (VMM), with hipMallocAsync and memory of all kinds
# gpus: 2xmi100
# userland: hip
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$top/build/workloads/hipjob
# The runtime's default of that time needs a driver of its own, which is not Linux'.
export HSA_ENABLE_IPC_MODE_LEGACY=0
comes_back --share ipc
# The runtime leaves the file of a shared event, also without criu.
rm -f /dev/shm/hip_event*
# Linux 7.2 does not import VRAM within a hive, and Debian's kernels give no access outside of one.
machine_load 1xmi100
comes_back_if_listed --share vmm
