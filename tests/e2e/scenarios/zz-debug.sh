# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debug
# gpus: 2xmi100

. "$top/tests/e2e/share.sh"
trap - ERR
set +e
for case in ${DEBUG_CASES:-ipc ipc-far orphan-freed orphan-exited handles ipc-kept ipc-sysmem vmm vmm-handle vmm-far vmm-shared mesh files}; do
	( comes_back "$case" ) || { echo "# BAD $case: $(cat "$work/reason")"; grep -h "amdgpu_plugin.*\(Error\|Warn\)\|Error (" $(ls -t "$work"/*.log | head -2) | tail -5 | sed 's/^/#   /'; mkdir -p /share/build/dbg/$case; cp "$work"/*.log "$work"/reason "$work"/job* /share/build/dbg/$case/ ; pkill -9 sharejob; sleep 1; }
	rm -f "$work/reason"
	rm -rf "$work"/[0-9]*
done
set -e
