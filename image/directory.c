// SPDX-License-Identifier: GPL-2.0-only
/* The images in criu's directory, before criu asks for any of them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "host/host.h"
#include "image/image.h"
#include "amdgpu_plugin_util.h"

static DIR *open_image_dir(void)
{
	int dir = criu_image_dir();
	_cleanup_close_ int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (entries)
		steal_fd(&fd);
	return entries;
}

int image_next(enum image_kind kind, int after)
{
	_cleanup_closedir_ DIR *entries = open_image_dir();
	struct image_name name;
	struct dirent *entry;
	int next = -1;

	while (entries && (entry = readdir(entries)))
		if (image_name_parse(entry->d_name, &name) && name.kind == kind && name.id > after &&
		    (next < 0 || name.id < next))
			next = name.id;
	return next;
}

void image_remove_all(void)
{
	_cleanup_closedir_ DIR *entries = open_image_dir();
	int dir = entries ? dirfd(entries) : -1;
	struct image_name name;
	struct dirent *entry;
	struct stat st;

	while (entries && (entry = readdir(entries))) {
		if (!image_name_parse(entry->d_name, &name) || fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
			continue;
		if (unlinkat(dir, entry->d_name, 0) && errno != ENOENT)
			pr_warn("image %s stays in the directory: %s\n", entry->d_name, strerror(errno));
	}
}
