// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images that an earlier dump into the same directory has left. This dump might not write files of these names, and a
 * restore would take them for its images.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <regex.h>
#include <sys/stat.h>

#include "host/host.h"
#include "image/image.h"
#include "amdgpu_plugin_util.h"

/* Every name that this plugin and the one in CRIU's tree give to an image. */
#define NAMES                                                                                                  \
	"^amdgpu-(kfd-[0-9]+|renderD-[0-9]+|dmabuf_[0-9]+|heir-[0-9]+|pages-[0-9]+-[0-9a-f]{4,8}|drm-pages-[0-9]+-[0-9]+-" \
	"[0-9a-f]{4,8})\\.img$"

static void remove_image(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return;
	if (unlinkat(dir, name, 0) && errno != ENOENT)
		pr_warn("image %s of an earlier dump stays in the directory: %s", name, strerror(errno));
}

void image_remove_stale(void)
{
	int dir = criu_image_dir();
	_cleanup_close_ int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	regex_t names;

	if (entries)
		steal_fd(&fd);
	if (!entries || regcomp(&names, NAMES, REG_EXTENDED | REG_NOSUB))
		return;
	while ((entry = readdir(entries)))
		if (!regexec(&names, entry->d_name, 0, NULL, 0))
			remove_image(dir, entry->d_name);
	regfree(&names);
}
