# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A restore of four processes that share fails in one of them, at each step: all end, soon, and nothing is left
# gpus: 2xmi100
# tier: all
# drivers: kfdsim, which fails on request

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# restore_fails FAULT: criu fails, in bounded time; the first line of the plugin is the reason
restore_fails() {
	pair=$1
	faults "$1"
	! criu_call restore -d || fail "criu restore succeeded"
	faults
	expect_gone
	expect_no_objects
	expect_no_dmabufs
	[ "${criu_seconds%.*}" -lt 60 ] || fail "the restore took $criu_seconds s to fail"
	grep -q 'Error (amdgpu_plugin): ' "$work/$criu_runs-restore.log" || fail "the plugin does not say why"
	shown "$1"
}

kernel_lists && case=mesh-kept || case=mesh
job_start "$case"
process_shape >"$work/shape"
dump
expect_gone
for nth in 1 5; do
	restore_fails "kfd:IMPORT_DMABUF $nth ENOMEM"
	restore_fails "kfd:MAP_MEMORY_TO_GPU $nth ENOMEM"
done
restore_fails 'kfd:CRIU_RESTORE 3 ENOMEM'
restore_fails 'kfd:CRIU_RESUME 2 EIO'
if [ "$case" = mesh-kept ]; then
	restore_fails 'drm:PRIME_FD_TO_HANDLE 2 ENOMEM'
	restore_fails 'drm:PRIME_FD_TO_HANDLE 9 ENOMEM'
	restore_fails 'drm:GEM_METADATA 2 EIO'
fi
restore
job_goes
job_end

if kernel_lists; then
	job_start vmm-handle
	process_shape >"$work/shape"
	dump
	expect_gone
	restore_fails 'drm:GEM_CREATE 1 ENOMEM'
	restore_fails 'drm:GEM_VA 3 ENOMEM'
	restore_fails 'drm:GEM_MMAP 2 EIO'
	restore
	job_goes
	job_end
fi
