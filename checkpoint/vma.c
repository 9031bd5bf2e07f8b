// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device mappings are told apart by device and offset range: a program may have mapped a
 * part of a BO, the same BO twice, or unmapped a piece of a mapping.
 */
#include "amdgpu_plugin_util.h"
#include "checkpoint/vma.h"

bool vma_names_gpu(const struct device_vma *vma)
{
	enum kfd_mmap_type type = kfd_mmap_type(vma->offset);

	return !vma->minor && (type == KFD_MMAP_TYPE_DOORBELL || type == KFD_MMAP_TYPE_MMIO);
}

uint32_t vma_kfd_gpu(const struct device_vma *vma, const struct kfd_state *state, bool by_user)
{
	uint32_t id = kfd_mmap_gpu_id(vma->offset), as_user = 0, as_actual = 0;
	size_t i;

	for (i = 0; i < state->nr_devices; i++) {
		if (state->devices[i].user_gpu_id == id)
			as_user = id;
		if (state->devices[i].actual_gpu_id == id)
			as_actual = state->devices[i].user_gpu_id;
	}
	if (as_user && as_actual)
		return by_user ? as_user : as_actual;
	return as_user ? as_user : as_actual;
}

const struct kfd_criu_bo_bucket *vma_bo(const struct device_vma *vma, const struct kfd_state *state,
					uint32_t user_gpu_id)
{
	uint64_t length = vma->end - vma->start;
	size_t i;

	for (i = 0; i < state->nr_bos; i++) {
		const struct kfd_criu_bo_bucket *bo = &state->bos[i];

		if (bo->gpu_id == user_gpu_id && kfd_bo_has_contents(bo) && vma->offset >= bo->offset &&
		    vma->offset - bo->offset < bo->size && length <= bo->size - (vma->offset - bo->offset))
			return bo;
	}
	return NULL;
}

bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int minor = 0;

	if (strcmp(path, "/dev/kfd") && sscanf(path, "/dev/dri/renderD%u", &minor) != 1)
		return false;
	/* Of a BO one page tells which it is. */
	*ret = (struct device_vma){
		.start = start,
		.end = start + (minor ? 1 : VMA_DOORBELL_PAGES) * page,
		.offset = offset,
		.minor = minor,
	};
	return true;
}
