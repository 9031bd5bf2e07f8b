// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restored task may have a mount namespace without proc, cgroups or a writable place. What is needed of these is
 * mounted outside of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

int mount_private(const char *type)
{
	_cleanup_close_ int fs = syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* A thread that shares its root cannot enter; one that has just ended may still share it. */
static int enter_namespace(int ns)
{
	return unshare(CLONE_FS) || setns(ns, CLONE_NEWNS) ? -1 : 0;
}

/* ---- a tmpfs for all ---- */

static int mount_here(const char *path)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (!mount("amdgpu-checkpoint", path, "tmpfs", flags, "mode=0700,size=100%,huge=within_size"))
		return 0;
	return mount("amdgpu-checkpoint", path, "tmpfs", flags, "mode=0700,size=100%") ? errno : 0;
}

/* A process of its own, since the caller stays where it is. */
static int mount_in(int ns, const char *path)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		_exit(enter_namespace(ns) ? EPERM : mount_here(path));
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

int mount_memory(const char *path)
{
	_cleanup_close_ int ns = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);

	return ns < 0 ? -errno : mount_in(ns, path);
}
