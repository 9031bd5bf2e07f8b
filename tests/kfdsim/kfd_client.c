// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own DRM file of each GPU. Every KFD buffer has a GEM handle there, and all KFD buffers that are one
 * memory share one: whose dma-buf is asked for, and how many references it has, follows from that. The DRM core does
 * the counting. Kernels before 6.8 had no such file: each export made a new dma-buf.
 */
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <drm/drm_client.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_prime.h>

#include "kfd.h"

static bool client_is_used(void)
{
	return !sim_machine.desc.kernel.dmabuf_per_export;
}

/* The core gives such a file only to drivers of displays: the GPU is one for as long as that takes. */
int kfd_client_init(struct kfd_gpu *kgpu)
{
	struct drm_device *ddev = &kgpu->gpu->ddev;
	int ret;

	INIT_LIST_HEAD(&ddev->mode_config.crtc_list);
	ddev->driver_features |= DRIVER_MODESET;
	ret = drm_client_init(ddev, &kgpu->client, "kfd", NULL);
	ddev->driver_features &= ~DRIVER_MODESET;
	if (ret)
		return ret;
	/* Nobody's: not one of the objects that processes leave behind. */
	sim_object_add(SIM_OBJ_DRM_FILE, -1);
	sim_object_add(SIM_OBJ_VM, -1);
	kgpu->has_client = true;
	return 0;
}

void kfd_client_fini(struct kfd_gpu *kgpu)
{
	if (!kgpu->has_client)
		return;
	sim_object_add(SIM_OBJ_DRM_FILE, 1);
	sim_object_add(SIM_OBJ_VM, 1);
	drm_client_release(&kgpu->client);
	kgpu->has_client = false;
}

static void client_use(struct kfd_bo *bo, u32 handle)
{
	struct kfd_gpu *kgpu = kfd_gpu(bo->pdd->gpu);

	mutex_lock(&kgpu->lock);
	bo->bo->kfd_users++;
	mutex_unlock(&kgpu->lock);
	bo->gem_handle = handle;
}

int kfd_client_add(struct kfd_bo *bo)
{
	u32 handle;
	int ret;

	if (!client_is_used())
		return 0;
	ret = drm_gem_handle_create(kfd_gpu(bo->pdd->gpu)->client.file, &bo->bo->base, &handle);
	if (!ret)
		client_use(bo, handle);
	return ret;
}

/* Whoever is first to free a buffer that has several KFD buffers closes the number that all of them have. */
void kfd_client_remove(struct kfd_bo *bo)
{
	struct kfd_gpu *kgpu = kfd_gpu(bo->pdd->gpu);
	bool last;

	if (bo->gem_handle) {
		mutex_lock(&kgpu->lock);
		last = !--bo->bo->kfd_users;
		mutex_unlock(&kgpu->lock);
		if (last || sim_machine.desc.kernel.free_closes_handle)
			drm_gem_handle_delete(kgpu->client.file, bo->gem_handle);
	}
	if (bo->dmabuf)
		dma_buf_put(bo->dmabuf);
}

/* Of amdgpu's own and of the same GPU only. */
static int import_without_client(struct kfd_bo *bo, struct dma_buf *buf)
{
	struct sim_bo *origin = sim_bo_of_dmabuf(buf);

	if (!origin || origin->gpu != bo->pdd->gpu)
		return -EINVAL;
	drm_gem_object_get(&origin->base);
	bo->bo = origin;
	return 0;
}

static int import_by_client(struct kfd_bo *bo, int fd, struct dma_buf *buf)
{
	struct drm_file *file = kfd_gpu(bo->pdd->gpu)->client.file;
	struct drm_gem_object *obj;
	u32 handle;
	int ret;

	ret = drm_gem_prime_fd_to_handle(&bo->pdd->gpu->ddev, file, fd, &handle);
	if (ret)
		return ret;
	obj = drm_gem_object_lookup(file, handle);
	if (!obj)
		return -EINVAL;
	if (sim_bo_is_refused_import(to_sim_bo(obj))) {
		drm_gem_handle_delete(file, handle);
		drm_gem_object_put(obj);
		return -EINVAL;
	}
	bo->bo = to_sim_bo(obj);
	client_use(bo, handle);
	get_dma_buf(buf);
	bo->dmabuf = buf;
	return 0;
}

int kfd_client_import(struct kfd_bo *bo, int fd)
{
	struct dma_buf *buf = dma_buf_get(fd);
	int ret;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = client_is_used() ? import_by_client(bo, fd, buf) : import_without_client(bo, buf);
	dma_buf_put(buf);
	return ret;
}

int kfd_bo_export(struct kfd_bo *bo, struct dma_buf **ret)
{
	u32 flags = bo->flags & KFD_MEM_WRITABLE ? DRM_RDWR : 0;
	struct dma_buf *buf;

	if (!client_is_used()) {
		buf = sim_bo_new_dmabuf(bo->bo, flags);
	} else {
		if (!bo->dmabuf) {
			buf = sim_prime_handle_to_dmabuf(&bo->pdd->gpu->ddev, kfd_gpu(bo->pdd->gpu)->client.file,
							 bo->gem_handle, flags);
			if (IS_ERR(buf))
				return PTR_ERR(buf);
			bo->dmabuf = buf;
		}
		buf = bo->dmabuf;
		get_dma_buf(buf);
	}
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	*ret = buf;
	return 0;
}
