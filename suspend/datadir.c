// SPDX-License-Identifier: GPL-2.0-only
/*
 * Directories for the data of freed buffers: one for each suspend, under a name that nobody else can guess or create,
 * and that only the records of the suspend have.
 *
 * Unless the user names a directory, they are in a tmpfs of our own. It and the records are in the mount namespace of
 * pid 1, whatever that of the caller is: every caller finds the same, and the mount lasts as long as the processes can.
 *
 * The name of a directory has the machine, its boot and the suspend. What an earlier boot of this machine has left on
 * a disk is removed: its processes are gone, and so are the records.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "image/image.h"
#include "suspend/internal.h"

#define PREFIX "amdgpu-suspend-"

void datadir_path(const char *dir, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s%s", path_is_in(dir, SUSPEND_RUN) ? RUN_ROOT : "", dir) >= PATH_MAX)
		path[0] = '\0';
}

/* It must be no one else's, nor a link: some are in directories that all may write. */
int datadir_open(const char *dir, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;

	datadir_path(dir, path);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return fail(-errno, "%s: cannot be opened: %m", dir);
	if (fstat(*ret_fd, &st) || st.st_uid != geteuid())
		return fail(-EPERM, "%s: belongs to another user, who could read or change what is saved there", dir);
	return 0;
}

/* ---- our own file system ---- */

int datadir_make_run(void)
{
	_cleanup_close_ int run = -1;

	if (mkdir(RUN_ROOT SUSPEND_RUN, 0700) && errno != EEXIST)
		return fail(-errno, SUSPEND_RUN ": cannot be made: %m");
	return datadir_open(SUSPEND_RUN, &run);
}

/* The first suspend mounts it; of two at the same time one waits. */
static int mount_once(void)
{
	_cleanup_close_ int run = -1, memory = -1;
	struct stat above, st;
	int err = datadir_make_run();

	if (!err)
		err = datadir_open(SUSPEND_RUN, &run);
	if (err)
		return err;
	while (flock(run, LOCK_EX))
		if (errno != EINTR)
			return fail(-errno, SUSPEND_RUN ": cannot be locked: %m");
	if (mkdir(RUN_ROOT SUSPEND_MEMORY, 0700) && errno != EEXIST)
		return fail(-errno, SUSPEND_MEMORY ": cannot be made: %m");
	err = datadir_open(SUSPEND_MEMORY, &memory);
	if (!err && (fstat(run, &above) || fstat(memory, &st)))
		err = fail(-errno, SUSPEND_MEMORY ": %m");
	if (err || st.st_dev != above.st_dev)
		return err;
	err = mount_memory(SUSPEND_MEMORY);
	return err ? fail(err, SUSPEND_MEMORY ": cannot be mounted: %m (-D DIR puts the data elsewhere)") : 0;
}

/* ---- names ---- */

/* The first 16 hexadecimal digits of a file, without dashes; zeros, which are no id, where it has fewer. */
static void read_id(const char *path, char id[17])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64] = "";
	size_t nr = 0;

	if (fd < 0 || read_text(fd, text, sizeof(text)))
		text[0] = '\0';
	for (const char *c = text; nr < 16 && strchr("0123456789abcdef-", *c) && *c; c++)
		if (*c != '-')
			id[nr++] = *c;
	if (nr < 16)
		memset(id, '0', 16);
	id[16] = '\0';
}

/* ---- what an earlier boot has left ---- */

/* Of a process; 0: of all. */
static void remove_files(int dir, int pid)
{
	_cleanup_closedir_ DIR *list = fdopendir(dup(dir));
	struct dirent *entry;
	struct image_name name;

	while (list && (entry = readdir(list)))
		if (image_name_parse(entry->d_name, &name) && name.kind == IMAGE_PAGES && (!pid || name.id == pid))
			unlinkat(dir, entry->d_name, 0);
}

/* Whether a directory's name is of this machine, and of another boot. */
static bool is_left(const char *name, const char *machine, const char *boot)
{
	char its_machine[17], its_boot[17], id[17];
	int end = 0;

	return sscanf(name, PREFIX "%16[0-9a-f]-%16[0-9a-f]-%16[0-9a-f]%n", its_machine, its_boot, id, &end) == 3 &&
	       !name[end] && strlen(id) == 16 && !strcmp(its_machine, machine) && strlen(its_boot) == 16 &&
	       strcmp(its_boot, boot) && strspn(its_machine, "0") < 16;
}

/* Only outside of containers: in one, the files that name machine and boot may be the engine's. */
static void remove_left(int base, const char *machine, const char *boot)
{
	_cleanup_closedir_ DIR *list = task_in_initial_pid_ns() > 0 ? fdopendir(dup(base)) : NULL;
	struct dirent *entry;

	while (list && (entry = readdir(list))) {
		_cleanup_close_ int dir = -1;
		struct stat st;

		if (!is_left(entry->d_name, machine, boot))
			continue;
		dir = openat(base, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 || fstat(dir, &st) || st.st_uid != geteuid())
			continue;
		remove_files(dir, 0);
		if (unlinkat(base, entry->d_name, AT_REMOVEDIR))
			pr_warn("%s: was left by an earlier boot, and cannot be removed: %s\n", entry->d_name,
				strerror(errno));
		else
			pr_warn("%s: was left by an earlier boot, and is removed\n", entry->d_name);
	}
}

/* ---- the directory of a suspend ---- */

int datadir_choose(const char *dir, uint64_t id, struct datadir *ret)
{
	char cwd[PATH_MAX] = "", machine[17], boot[17], path[PATH_MAX];
	_cleanup_close_ int base = -1;
	int err = dir ? 0 : mount_once();

	if (err)
		return err;
	dir = dir ? dir : SUSPEND_MEMORY;
	if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return fail(-errno, "the working directory: %m");
	read_id("/etc/machine-id", machine);
	read_id("/proc/sys/kernel/random/boot_id", boot);
	if (snprintf(ret->base, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", dir) >= PATH_MAX ||
	    snprintf(ret->dir, PATH_MAX, "%s/" PREFIX "%s-%s-%016" PRIx64, ret->base, machine, boot, id) >= PATH_MAX)
		return fail(-ENAMETOOLONG, "%s: %m", dir);
	datadir_path(ret->base, path);
	ret->is_new_base = access(path, F_OK) && errno == ENOENT;
	if (!ret->is_new_base)
		err = datadir_open(ret->base, &base);
	if (!err && base >= 0)
		remove_left(base, machine, boot);
	return err;
}

int datadir_make(const struct datadir *datadir, int *ret_fd)
{
	_cleanup_close_ int base = -1;
	char path[PATH_MAX];
	int err;

	datadir_path(datadir->base, path);
	if (datadir->is_new_base && mkdir(path, 0700) && errno != EEXIST)
		return fail(-errno, "%s: cannot be made: %m", datadir->base);
	err = datadir_open(datadir->base, &base);
	if (err)
		return err;
	datadir_path(datadir->dir, path);
	if (mkdir(path, 0700))
		return fail(-errno, "%s: cannot be made: %m", datadir->dir);
	return datadir_open(datadir->dir, ret_fd);
}

int datadir_check_room(const char *dir, int fd, uint64_t bytes)
{
	struct memory_room memory;
	struct statvfs space;
	struct statfs fs;

	if (!fstatvfs(fd, &space) && space.f_blocks && (uint64_t)space.f_bfree * space.f_frsize < bytes)
		return fail(-ENOSPC,
			    "%s: the buffer data need %" PRIu64 " bytes, and %" PRIu64
			    " are free there: make room, or put them elsewhere (-D DIR)",
			    dir, bytes, (uint64_t)space.f_bfree * space.f_frsize);
	if (fstatfs(fd, &fs) || (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC))
		return 0;
	memory_ask_room(&memory);
	if (bytes <= memory.bytes)
		return 0;
	return fail(-ENOSPC,
		    "the buffer data need %" PRIu64 " bytes of memory, and %s has %" PRIu64
		    " available: make room, or put them on a disk (-D DIR)",
		    bytes, memory.by, memory.bytes);
}

void datadir_remove_files(const struct record_head *head)
{
	_cleanup_close_ int dir = -1;
	char path[PATH_MAX];

	datadir_path(head->dir, path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0)
		remove_files(dir, head->pid);
}

void datadir_remove(const struct record_head *head)
{
	char path[PATH_MAX], *slash;

	datadir_path(head->dir, path);
	rmdir(path);
	slash = strrchr(path, '/');
	if (!head->made_base || !slash)
		return;
	*slash = '\0';
	rmdir(path);
}
