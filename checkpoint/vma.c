// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which GPU and BO a device mapping is of, told by device and offset range: a program may have mapped a part of a BO,
 * the same BO twice, or unmapped a part of a mapping. Pure.
 *
 * An offset of /dev/kfd names a GPU by its user or its actual id, which depends on the kernel; which of them it is
 * shows in whether the process has such a GPU. Where GPUs have taken each other's ids, both are possible, and the
 * kernel's rule decides.
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
	for (size_t i = 0; i < state->nr_devices; i++) {
		if (state->devices[i].user_gpu_id == id)
			as_user = id;
		if (state->devices[i].actual_gpu_id == id)
			as_actual = state->devices[i].user_gpu_id;
	}
	if (as_user && as_actual)
		return by_user ? as_user : as_actual;
	return as_user ? as_user : as_actual;
}

static int compare_bos(const struct bo *bo, uint32_t gpu_id, uint64_t offset)
{
	if (bo->gpu_id != gpu_id)
		return bo->gpu_id < gpu_id ? -1 : 1;
	return (bo->offset > offset) - (bo->offset < offset);
}

static int compare_entries(const void *a, const void *b)
{
	const struct bo *const *x = a, *const *y = b;

	return compare_bos(*x, (*y)->gpu_id, (*y)->offset);
}

int vma_bos_sort(const struct kfd_state *state, struct vma_bos *ret)
{
	*ret = (struct vma_bos){ .list = calloc(state->nr_bos + 1, sizeof(*ret->list)) };
	if (!ret->list)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++)
		if (kfd_bo_has_contents(&state->bos[i]))
			ret->list[ret->nr++] = &state->bos[i];
	qsort(ret->list, ret->nr, sizeof(*ret->list), compare_entries);
	return 0;
}

void vma_bos_done(struct vma_bos *bos)
{
	free(bos->list);
	*bos = (struct vma_bos){ 0 };
}

const struct bo *vma_bo(const struct device_vma *vma, const struct vma_bos *bos, uint32_t user_gpu_id)
{
	const struct bo *bo;
	uint64_t length = vma->end - vma->start, into;
	size_t low = 0, high = bos->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_bos(bos->list[middle], user_gpu_id, vma->offset) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || bos->list[low - 1]->gpu_id != user_gpu_id)
		return NULL;
	bo = bos->list[low - 1];
	into = vma->offset - bo->offset;
	return into < bo->size && length <= bo->size - into ? bo : NULL;
}

bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int minor = 0;

	if (strcmp(path, "/dev/kfd") && sscanf(path, "/dev/dri/renderD%u", &minor) != 1)
		return false;
	/* One page is enough to tell which BO it is. */
	*ret = (struct device_vma){
		.start = start,
		.end = start + (minor ? 1 : VMA_DOORBELL_PAGES) * page,
		.offset = offset,
		.minor = minor,
	};
	return true;
}
