# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Processes that share are restored on GPUs with other ids only when a setting allows it, since kernels confuse the ids
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

for case in ipc-far mesh; do
	pair=$case
	machine_load 2xmi100
	job_start "$case"
	process_shape >"$work/shape"
	dump
	machine_load 2xmi100-b
	restore_refused
	expect_no_dmabufs
	grep -q 'Error (amdgpu_plugin): .*KFD_SHARING_CHECK=0' "$work/$criu_runs-restore.log" ||
		fail "no word of the setting: $(criu_errors)"
	KFD_SHARING_CHECK=0 restore
	job_goes
	job_end
	shown "$case"
done

# Without /dev/kfd there are no ids to confuse.
if kernel_lists; then
	pair=render
	machine_load 2xmi100
	job_start render
	job_returns machine_load 2xmi100-b
	job_end
	expect_no_objects
	shown render
fi
