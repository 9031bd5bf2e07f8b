// SPDX-License-Identifier: GPL-2.0-only
/* From where a restored task maps its devices. */
#include <inttypes.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/vma.h"

/* Every GPU has doorbells. */
static bool can_map_doorbells(const struct vma_context *context, uint32_t gpu_id)
{
	uint64_t offset = kfd_mmap_with_gpu_id((uint64_t)KFD_MMAP_TYPE_DOORBELL << KFD_MMAP_TYPE_SHIFT, gpu_id);
	uint64_t length = VMA_DOORBELL_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = criu_kept_file(context->kfd_token);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, length);
	return true;
}

/* Decided by the first GPU whose ids tell: its id on this machine is not one by which the process knows a GPU. */
static bool maps_by_user_id(const struct vma_context *context)
{
	for (size_t i = 0; i < context->gpus->nr; i++) {
		uint32_t actual_id = context->gpus->list[i].actual_id;

		if (!gpus_by_user_id(context->gpus, actual_id))
			return !can_map_doorbells(context, actual_id);
	}
	return context->rules.maps_by_user_id;
}

/*
 * Doorbells and MMIO. Up to Linux 7.2 the offset names the actual GPU, since 7.3 the
 * user's; asked of the kernel, where the ids differ in a way that it can tell.
 */
static int map_kfd(const struct vma_context *context, const struct device_vma *vma, uint64_t *ret_offset)
{
	const struct gpu *gpu;

	*ret_offset = vma->offset;
	if (!vma_names_gpu(vma))
		return 0;
	gpu = gpus_by_user_id(context->gpus, vma->gpu_id ? vma->gpu_id : kfd_mmap_gpu_id(vma->offset));
	if (!gpu)
		return -ENODEV;
	*ret_offset = kfd_mmap_with_gpu_id(vma->offset, maps_by_user_id(context) ? gpu->user_id : gpu->actual_id);
	return 0;
}

static int map_render(const struct vma_context *context, const struct gpu *gpu, const struct device_vma *vma,
		      uint64_t *ret_offset)
{
	const struct bo *bo = vma_bo(vma, context->bos, gpu->user_id);

	if (!bo)
		return -ENODEV;
	*ret_offset = vma_restored_offset(vma, bo);
	return 0;
}

static int compare_starts(const void *start, const void *vma)
{
	uint64_t a = *(const uint64_t *)start, b = ((const struct device_vma *)vma)->start;

	return (a > b) - (a < b);
}

/* The saved description; images of other writers have none, and tell ours by the GPUs that they name. */
bool vma_find(const struct vma_context *context, const char *path, uint64_t start, uint64_t offset,
	      struct device_vma *ret)
{
	const struct kfd_image *image = context->image;
	const struct device_vma *found = NULL;

	if (image && image->nr_vmas)
		found = bsearch(&start, image->vmas, image->nr_vmas, sizeof(*image->vmas), compare_starts);
	if (found) {
		*ret = *found;
		return true;
	}
	if (image && image->has_vmas)
		return false;
	return vma_from_path(path, start, offset, ret) &&
	       (!ret->minor || gpus_by_saved_minor(context->gpus, ret->minor));
}

int vma_restore(const struct vma_context *context, const char *path, const struct device_vma *vma,
		uint64_t *ret_offset, int *ret_fd)
{
	const struct gpu *gpu = vma->minor ? gpus_by_saved_minor(context->gpus, vma->minor) : NULL;
	int fd, token = context->kfd_token, err = -ENODEV;

	if (context->kfd_token >= 0 && !vma->minor)
		err = map_kfd(context, vma, ret_offset);
	else if (gpu && (context->kfd_token >= 0 || (context->image && context->image->render_only)))
		err = map_render(context, gpu, vma, ret_offset);
	if (err)
		return fail(err, "mapping at %#" PRIx64 " of %s: no restored GPU or buffer has file offset %#" PRIx64,
			    vma->start, path, vma->offset);
	if (gpu)
		token = share_kept_file(context->share, gpu->minor, gpu->file_token, *ret_offset);
	fd = criu_vma_file(token, context->traits);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
