// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restored task may have a mount namespace without proc, cgroups or a writable place.
 * What is needed of them is mounted apart from it.
 */
#define _GNU_SOURCE
#include <linux/mount.h>
#include <sys/syscall.h>

#include "kernel/mount.h"
#include "amdgpu_plugin_util.h"

static int set_flags(int fs, const char *flags)
{
	_cleanup_free_ char *copy = strdup(flags);
	char *rest = copy, *flag;

	if (!copy)
		return -ENOMEM;
	while ((flag = strsep(&rest, ",")))
		if (*flag && syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, flag, NULL, 0) < 0)
			return -errno;
	return 0;
}

int mount_private(const char *type, const char *flags)
{
	_cleanup_close_ int fs = syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	int fd, err;

	if (fs < 0)
		return -errno;
	err = set_flags(fs, flags ? flags : "");
	if (err)
		return err;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}
