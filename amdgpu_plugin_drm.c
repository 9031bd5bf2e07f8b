// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render nodes. A node is recognised by its driver's name and its device number,
 * never by its path alone: in a container the path may be another device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <libdrm/drm.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

#define DRM_MAJOR 226

bool drm_is_amd(int fd)
{
	char name[16] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	return !ioctl(fd, DRM_IOCTL_VERSION, &version) && !strcmp(name, "amdgpu");
}

int drm_open_minor(uint32_t minor_number)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor_number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_rdev != makedev(DRM_MAJOR, minor_number) || !drm_is_amd(fd))
		return -ENODEV;
	return steal_fd(&fd);
}
