# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Buffers imported by other processes, on the same GPU and on another one, with and without their exporter
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

for case in ipc ipc-far orphan-freed orphan-exited orphan-alone; do
	comes_back "$case"
done
for case in ipc-kept ipc-sysmem; do
	comes_back_if_listed "$case"
done
machine_apart
for case in ipc-across ipc-anew; do
	comes_back "$case"
	goes_on "$case"
done
if can_translate; then
	machine_translated
	for case in ipc-far-sysmem ipc-across; do
		comes_back "$case"
		goes_on "$case"
	done
fi
machine_load 1xmi300x-cpx
comes_back ipc-far
