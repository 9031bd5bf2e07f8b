# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# VMM: memory by handles, mapped in parts, on two GPUs and in two processes
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

for case in vmm vmm-handle vmm-shared vmm-far; do
	comes_back_if_listed "$case"
done
