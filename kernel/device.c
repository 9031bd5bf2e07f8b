// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices are known by their numbers. A path is only the first place to look: in a
 * restored container it may be missing or be another device.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

#define KFD_NUMBER	 "/sys/class/kfd/kfd/dev"
#define RENDER_MINOR_MIN 128

bool device_kfd_number(dev_t *ret)
{
	static dev_t number; /* 0: not found yet */
	_cleanup_fclose_ FILE *f = NULL;
	unsigned int maj, min;

	if (!number && (f = fopen(KFD_NUMBER, "re")) && fscanf(f, "%u:%u", &maj, &min) == 2)
		number = makedev(maj, min);
	*ret = number;
	return number != 0;
}

dev_t device_render_number(uint32_t minor_number)
{
	return makedev(DRM_MAJOR, minor_number);
}

bool device_is_kfd(const struct stat *st)
{
	dev_t kfd;

	return S_ISCHR(st->st_mode) && device_kfd_number(&kfd) && st->st_rdev == kfd;
}

bool device_is_render_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == DRM_MAJOR && minor(st->st_rdev) >= RENDER_MINOR_MIN;
}

int device_open(const char *path, dev_t number, int flags)
{
	_cleanup_close_ int fd = -1, dir = -1;
	struct stat st = { 0 };

	/* Looked at before it is opened: opening some other device may have effects. */
	if (stat_quietly(AT_FDCWD, path, &st) == -ENOMEM)
		return -ENOMEM;
	if (S_ISCHR(st.st_mode) && st.st_rdev == number) {
		fd = open(path, flags | O_CLOEXEC);
	} else { /* a node of our own, in a directory that nobody else sees */
		dir = mount_private("tmpfs");
		if (dir < 0)
			return dir;
		if (mknodat(dir, "node", S_IFCHR | 0600, number))
			return -errno;
		fd = openat(dir, "node", flags | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return st.st_rdev == number ? steal_fd(&fd) : -ENODEV;
}

int device_flags(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -errno : flags & DEVICE_FLAGS;
}

int device_set_status(int fd, int flags)
{
	return fcntl(fd, F_SETFL, flags & DEVICE_FLAGS & ~O_ACCMODE) ? -errno : 0;
}
