// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a GPU, sees whether it has DMA rings, and lets content/dmacopy.c or content/cpucopy.c copy.
 */
#include "content/copier.h"

#include <libdrm/amdgpu_drm.h>

#include "content/cpucopy.h"
#include "content/dmacopy.h"

static int open_device(struct copier *copier)
{
	struct drm_amdgpu_info_hw_ip dma = { 0 };
	struct amdgpu_gpu_info info = { 0 };
	uint32_t major, minor;
	int err;

	copier->doing = "opening the render node by libdrm, which has to find it in /dev/dri";
	err = amdgpu_device_initialize(copier->config.render_fd, &major, &minor, &copier->device);
	if (err)
		return err;
	copier->doing = "asking for the GPU's family";
	err = amdgpu_query_gpu_info(copier->device, &info);
	if (err)
		return err;
	copier->family_id = info.family_id;
	copier->doing = "asking for DMA rings";
	err = amdgpu_query_hw_ip_info(copier->device, AMDGPU_HW_IP_DMA, 0, &dma);
	if (err)
		return err;
	copier->dma_rings = dma.available_rings;
	return 0;
}

int copier_init(struct copier *copier, const struct copier_config *config)
{
	int err;

	*copier = (struct copier){ .config = *config };
	err = open_device(copier);
	if (err)
		return err;
	copier->cpu = !copier->dma_rings;
	copier->ops = copier->cpu ? &cpucopy_ops : &dmacopy_ops;
	return copier->ops->init(copier);
}

int copier_drain(struct copier *copier)
{
	copier->config.stopped = NULL; /* the memory must not go while the GPU uses it */
	return copier->ops && copier->ops->drain ? copier->ops->drain(copier) : 0;
}

int copier_done(struct copier *copier)
{
	int ret = copier_drain(copier), err;

	err = copier->ops ? copier->ops->done(copier) : 0;
	ret = ret ? ret : err;
	err = copier->device ? amdgpu_device_deinitialize(copier->device) : 0;
	copier->device = NULL;
	return ret ? ret : err;
}

int copier_map_bo(struct copier *copier, struct content_bo *bo)
{
	bo->mapping = (struct content_mapping){ 0 };
	return copier->ops->map_bo(copier, bo);
}

int copier_unmap_bo(struct copier *copier, struct content_bo *bo)
{
	return copier->ops->unmap_bo(copier, bo);
}

int copier_copy(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		uint64_t slot_off, uint64_t len)
{
	return copier->ops->copy(copier, slot, bo, bo_off, slot_off, len);
}

int copier_zero(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		uint64_t slot_off, uint64_t len)
{
	return copier->ops->zero(copier, slot, bo, bo_off, slot_off, len);
}

int copier_submit(struct copier *copier, unsigned int slot)
{
	return copier->ops->submit ? copier->ops->submit(copier, slot) : 0;
}

int copier_wait(struct copier *copier, unsigned int slot)
{
	return copier->ops->wait ? copier->ops->wait(copier, slot) : 0;
}

int copier_check_reset(struct copier *copier)
{
	return copier->ops->check_reset ? copier->ops->check_reset(copier) : 0;
}
