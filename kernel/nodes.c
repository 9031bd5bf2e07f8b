// SPDX-License-Identifier: GPL-2.0-only
/*
 * criu restores a container's /dev as it was. On another GPU, programs that start later in the container look for a
 * node that is not there.
 *
 * A /dev may also be the machine's, or shared with others. One that criu has just made is a tmpfs that was not mounted
 * when criu started. No link is followed on the way there: a container could have laid one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

#define ENGINES_MODE 0666

struct mounted {
	size_t nr;
	dev_t *devices;
};

struct mounted *mounted_read(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	struct mounted *mounted = f ? calloc(1, sizeof(*mounted)) : NULL;
	_cleanup_free_ char *line = NULL;
	unsigned int maj, min;
	size_t size = 0;

	while (mounted && getline(&line, &size, f) > 0)
		if (sscanf(line, "%*d %*d %u:%u", &maj, &min) == 2 && array_add(mounted->devices, mounted->nr, makedev(maj, min))) {
			mounted_free(mounted);
			return NULL;
		}
	return mounted;
}

void mounted_free(struct mounted *mounted)
{
	if (!mounted)
		return;
	free(mounted->devices);
	free(mounted);
}

int nodes_make(const struct mounted *mounted, uint32_t minor, uint32_t model)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	_cleanup_close_ int dir = mounted ? (int)syscall(SYS_openat2, AT_FDCWD, "/dev/dri", &how, sizeof(how)) : -1;
	dev_t number = device_render_number(minor);
	char name[32], model_name[32];
	struct statfs fs;
	struct stat st;
	bool has_model;

	if (dir < 0 || fstatfs(dir, &fs) || fs.f_type != TMPFS_MAGIC || fstat(dir, &st))
		return 0;
	for (size_t i = 0; i < mounted->nr; i++)
		if (mounted->devices[i] == st.st_dev)
			return 0;
	snprintf(name, sizeof(name), "renderD%u", minor);
	snprintf(model_name, sizeof(model_name), "renderD%u", model);
	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return S_ISCHR(st.st_mode) && st.st_rdev == number ? 0 : -EEXIST;
	has_model = !fstatat(dir, model_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISCHR(st.st_mode);
	/* Another task of the container may have made it meanwhile. */
	if (mknodat(dir, name, S_IFCHR, number))
		return errno == EEXIST ? 0 : -errno;
	if (has_model && fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return fchmodat(dir, name, has_model ? st.st_mode & 0777 : ENGINES_MODE, 0) ? -errno : 0;
}
