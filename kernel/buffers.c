// SPDX-License-Identifier: GPL-2.0-only
/* Buffers of the KFD besides those of its CRIU ioctl. */
#include <sys/ioctl.h>

#include "kernel/buffers.h"
#include "kernel/kfd.h"
#include "amdgpu_plugin_util.h"
#include "kfd_ioctl.h"

static int call(int kfd, unsigned long op, void *args)
{
	int r;

	do {
		r = ioctl(kfd, op, args);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int kfd_import_dmabuf(int kfd, uint32_t gpu_id, uint64_t va, int dmabuf_fd, uint64_t *ret_handle)
{
	struct kfd_ioctl_import_dmabuf_args args = { .va_addr = va, .gpu_id = gpu_id, .dmabuf_fd = (uint32_t)dmabuf_fd };
	int err = call(kfd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	if (!err)
		*ret_handle = args.handle;
	return err;
}

int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)gpu_ids,
		.n_devices = nr_gpus,
	};

	return nr_gpus ? call(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args) : 0;
}

int kfd_free(int kfd, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return call(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret_gpu_id)
{
	uint8_t metadata[KFD_METADATA_MAX]; /* with less room than it needs, the call fails */
	struct kfd_ioctl_get_dmabuf_info_args args = {
		.metadata_ptr = (uintptr_t)metadata, .metadata_size = sizeof(metadata), .dmabuf_fd = (uint32_t)dmabuf_fd,
	};
	int err = call(kfd, AMDKFD_IOC_GET_DMABUF_INFO, &args);

	if (!err)
		*ret_gpu_id = args.gpu_id;
	return err;
}

bool kfd_can_export(int kfd)
{
	struct kfd_ioctl_get_version_args version = { 0 };

	/* A KFD that does not answer is taken for a later one. */
	return call(kfd, AMDKFD_IOC_GET_VERSION, &version) || version.major_version > 1 || version.minor_version >= 12;
}
