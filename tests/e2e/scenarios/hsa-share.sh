# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on ROCm's HSA runtime that share memory by its IPC and by its virtual memory
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$hsajob
# The runtime's default of that time needs a driver of its own, which is not Linux'.
export HSA_ENABLE_IPC_MODE_LEGACY=0
comes_back --share ipc
# Linux 7.2 does not import VRAM within a hive, and Debian's kernels give no access outside of one.
machine_load 1xmi100
comes_back_if_listed --share vmem
