# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on the HSA runtime of ROCm 7.2 that share memory by its IPC, as it is set up, and by its virtual memory
# gpus: 2xmi100
# needs: build/interop/rocm/version, interop
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$hsajob
unset HSA_ENABLE_IPC_MODE_LEGACY
export LD_LIBRARY_PATH=$top/build/interop/rocm/usr/lib/x86_64-linux-gnu
ldd "$hsajob" | grep "libhsa-runtime64.*$top/build/interop/rocm" >/dev/null || fail "the job does not use ROCm $(<"$top/build/interop/rocm/version")"
# This runtime leaves a handle behind for each export.
comes_back_if_listed --share ipc
machine_load 1xmi100
comes_back_if_listed --share vmem
unset LD_LIBRARY_PATH
