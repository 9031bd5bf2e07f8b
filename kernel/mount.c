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

/* ---- a tmpfs for all ---- */

int mount_memory(const char *path)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	_cleanup_close_ int ns = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
	int status = 0;
	pid_t child;

	if (ns < 0)
		return -errno;
	child = fork(); /* the caller stays where it is */
	if (!child) {
		/* A thread that shares its root cannot enter; one that has just ended may still share it. */
		if (unshare(CLONE_FS) || setns(ns, CLONE_NEWNS))
			_exit(EPERM);
		if (mount("amdgpu-checkpoint", path, "tmpfs", flags, "mode=0700,size=100%,huge=within_size") &&
		    mount("amdgpu-checkpoint", path, "tmpfs", flags, "mode=0700,size=100%"))
			_exit(errno);
		_exit(0);
	}
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}
