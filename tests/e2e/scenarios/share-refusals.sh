# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Sharing that cannot be saved is refused by name, and the job goes on
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

stays 'not dumped' outside-import
stays 'not dumped' outside-export
stays 'not dumped' outside-handle
stays 'not dumped' outside-dmabuf
stays 'under way' under-way
stays 'udmabuf' udmabuf
if kernel_lists; then
	stays 'always valid' always-valid
	stays 'userptr' userptr
else
	stays '6\.18' always-valid
	stays '6\.18' userptr
fi
stays 'context' context
# Only the driver of newer kernels has such objects, and tells of VMIDs.
if ! is_model && kernel_lists; then
	stays 'doorbell' doorbell
	stays 'reserved a VMID' vmid
fi
