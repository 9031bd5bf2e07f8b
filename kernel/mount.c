// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restored task may have a mount namespace without proc, cgroups or a writable place. What is needed of these is
 * mounted outside of it.
 *
 * Libraries open paths: for the time of their calls, the task moves to a mount namespace and a
 * root directory in which these are right.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
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

#define RENDER_NODE "/dev/dri/renderD%u"

/* What libdrm looks for. */
static bool shows_render_nodes(const uint32_t *minors, size_t nr_minors)
{
	char path[64];

	for (size_t i = 0; i < nr_minors; i++) {
		snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/drm", DRM_MAJOR, minors[i]);
		if (access(path, F_OK))
			return false;
		snprintf(path, sizeof(path), RENDER_NODE, minors[i]);
		if (access(path, F_OK))
			return false;
	}
	return true;
}

static int put_on(int fs, const char *path)
{
	return syscall(SYS_move_mount, fs, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

/* A thread that shares its root cannot enter; one that has just ended may still share it. */
static int enter_namespace(int ns)
{
	return unshare(CLONE_FS) || setns(ns, CLONE_NEWNS) ? -1 : 0;
}

/* The root of the namespace is a mount, the task's own may be any directory: only a mount can be made private. */
static int leave_namespace(int ns)
{
	if (enter_namespace(ns) || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	return 0;
}

static int make_mount_point(const char *path)
{
	return mknod(path, S_IFREG | 0400, 0) ? -errno : 0;
}

/* Files will do: nodes are opened otherwise. Without its list of names libdrm complains on the program's stderr. */
static int make_names(const uint32_t *minors, size_t nr_minors)
{
	static const char *const dirs[] = { "/dev", "/dev/dri", "/usr", "/usr/share", "/usr/share/libdrm" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755))
			return -errno;
	for (size_t i = 0; i < nr_minors; i++) {
		snprintf(path, sizeof(path), RENDER_NODE, minors[i]);
		if (make_mount_point(path))
			return -errno;
	}
	return make_mount_point("/usr/share/libdrm/amdgpu.ids");
}

static int make_root(int root, int sysfs)
{
	int err = put_on(root, "/");

	if (err)
		return err;
	if (fchdir(root) || chroot(".") || mkdir("/sys", 0755))
		return -errno;
	return put_on(sysfs, "/sys");
}

int mount_show_render_nodes(const uint32_t *minors, size_t nr_minors, struct mount_place *place)
{
	_cleanup_close_ int proc = -1, sysfs = -1, root = -1;
	int err;

	*place = (struct mount_place){ .ns = -1, .root = -1, .cwd = -1 };
	if (shows_render_nodes(minors, nr_minors))
		return 0;
	proc = mount_private("proc");
	sysfs = mount_private("sysfs");
	root = mount_private("tmpfs");
	err = proc < 0 ? proc : sysfs < 0 ? sysfs : root < 0 ? root : 0;
	if (err)
		return err;
	place->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->root < 0 || place->cwd < 0)
		return -errno;
	place->ns = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (place->ns < 0)
		return -errno;
	err = leave_namespace(place->ns);
	if (err)
		return err;
	err = make_root(root, sysfs);
	if (err)
		return err;
	return make_names(minors, nr_minors);
}

int mount_go_back(struct mount_place *place)
{
	_cleanup_close_ int ns = place->ns, root = place->root, cwd = place->cwd;

	*place = (struct mount_place){ .ns = -1, .root = -1, .cwd = -1 };
	if (ns < 0)
		return 0;
	return enter_namespace(ns) || fchdir(root) || chroot(".") || fchdir(cwd) ? -errno : 0;
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
