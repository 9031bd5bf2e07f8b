// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which BO a mapping of a render node is of: told by GPU and range of offsets, since a program may have mapped a part
 * of a BO, the same BO twice, or unmapped a part of a mapping. There can be a hundred thousand of both.
 */
#include "amdgpu_plugin_util.h"
#include "kernel/tasks.h"

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
		if (kfd_bo_has_data(&state->bos[i]))
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
