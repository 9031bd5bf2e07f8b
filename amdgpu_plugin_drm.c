// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render nodes. One is AMD's when its driver says so by name.
 */
#include <sys/ioctl.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "kernel/kernel.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

/* DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES of Linux 6.18: asked with no room, it tells the number. */
struct list_handles {
	uint64_t entries;
	uint32_t num_entries;
	uint32_t padding;
};
#define IOCTL_LIST_HANDLES DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list_handles)

/* As far as handles are tried out, where they cannot be listed. A file gives out the lowest free number. */
#define MAX_TRIED_HANDLE 4096

bool drm_is_amd(int fd)
{
	char name[16] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	return !ioctl(fd, DRM_IOCTL_VERSION, &version) && !strcmp(name, "amdgpu");
}

int drm_open_minor(uint32_t minor_number)
{
	_cleanup_close_ int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor_number);
	fd = device_open(path, device_render_number(minor_number));
	if (fd < 0)
		return fd;
	return drm_is_amd(fd) ? steal_fd(&fd) : -ENODEV;
}

/* Handle by handle: any but an unknown one has a size to tell. */
static int try_handles(int fd, uint32_t *ret)
{
	struct drm_amdgpu_gem_create_in info;
	uint32_t handle, count = 0;

	for (handle = 1; handle <= MAX_TRIED_HANDLE; handle++) {
		struct drm_amdgpu_gem_op args = {
			.handle = handle,
			.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
			.value = (uintptr_t)&info,
		};

		if (!ioctl(fd, DRM_IOCTL_AMDGPU_GEM_OP, &args))
			count++;
		else if (errno != ENOENT)
			return -errno;
	}
	*ret = count;
	return 0;
}

int drm_count_objects(int fd, uint32_t *ret)
{
	struct list_handles args = { 0 };

	if (ioctl(fd, IOCTL_LIST_HANDLES, &args))
		return errno == EINVAL ? try_handles(fd, ret) : -errno;
	*ret = args.num_entries;
	return 0;
}
