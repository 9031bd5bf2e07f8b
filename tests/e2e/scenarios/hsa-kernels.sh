# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on ROCm's HSA runtime, each with a compiled kernel that computes in memory of the other one (IPC), caught in the middle
# gpus: 2xmi100
# kernels: each

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$hsajob
# The runtime's default of that time needs a driver of its own, which is not Linux'.
export HSA_ENABLE_IPC_MODE_LEGACY=0
# In each generation the kernels run until they are let go, and each process checks what the other's one has computed.
if loses_stacks; then
	stays "$no_stacks" --share ipc --kernels "$top/build/gcn/busy.co"
	return
fi
comes_back --share ipc --kernels "$top/build/gcn/busy.co"
grep -q 'amdgpu_plugin: pid .*: told of exceptions' "$work"/*-restore.log || fail "the runtime's programs do not hear of exceptions after the restore"
