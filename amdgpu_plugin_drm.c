// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render nodes. One is AMD's when its driver says so by name.
 */
#include <sys/ioctl.h>

#include <libdrm/drm.h>

#include "amdgpu_plugin_device.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

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
