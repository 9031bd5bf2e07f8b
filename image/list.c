// SPDX-License-Identifier: GPL-2.0-only
/* Which images the directory has, before criu asks for any of them. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "host/host.h"
#include "image/image.h"
#include "amdgpu_plugin_util.h"

/* -1: of something else */
static int id_of(const char *name)
{
	int id, end = 0;

	return sscanf(name, "amdgpu-kfd-%9d.img%n", &id, &end) == 1 && end && !name[end] ? id : -1;
}

int kfd_image_next(int after)
{
	int dir = criu_image_dir();
	_cleanup_close_ int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int next = -1;

	if (entries)
		steal_fd(&fd);
	while (entries && (entry = readdir(entries))) {
		int id = id_of(entry->d_name);

		if (id > after && (next < 0 || id < next))
			next = id;
	}
	return next;
}
