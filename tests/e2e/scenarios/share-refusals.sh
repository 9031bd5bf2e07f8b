# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Sharing that cannot be saved is refused by name, and the job goes on
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

stays 'outside' outside-import
stays 'outside' outside-export
stays 'outside' outside-handle
stays 'outside' outside-dmabuf
stays 'on its way\|under way' under-way
stays 'udmabuf' udmabuf
stays 'always valid\|VM_ALWAYS_VALID' always-valid
stays 'userptr' userptr
stays 'context' context
stays 'VMID' vmid
# The model does not have these.
if [ ! -e "$objects_file" ]; then
	stays 'doorbell' doorbell
fi
