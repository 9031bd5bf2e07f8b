// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/shm/hsakmt_shared_mem and /dev/shm/sem.hsakmt_semaphore of ROCm before 6.0 (September
 * 2023). The path is looked up below the task's own root, which it must not lead out of.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "image/hsakmt.h"
#include "amdgpu_plugin_util.h"

#define SHM_DIRECTORY  "dev/shm"
#define MEMORY_NAME    "hsakmt_shared_mem"
#define SEMAPHORE_NAME "sem.hsakmt_semaphore"

/* A semaphore of glibc's on 64-bit machines: 32 bytes, the value in the first word. */
#define SEMAPHORE_BYTES 32
#define SEMAPHORE_VALUE 1

/* What both files are made with by ROCm. */
#define FILE_MODE 0666

uint32_t hsakmt_magic(const struct hsakmt *hsakmt)
{
	uint32_t magic = 0;

	if (hsakmt->memory.size >= sizeof(magic))
		memcpy(&magic, hsakmt->memory.data, sizeof(magic));
	return magic;
}

void hsakmt_begin(uint32_t size, uint32_t magic, struct hsakmt *ret)
{
	static const uint32_t value = SEMAPHORE_VALUE;

	*ret = (struct hsakmt){
		.memory = { .size = size, .mode = FILE_MODE },
		.semaphore = { .size = SEMAPHORE_BYTES, .mode = FILE_MODE },
	};
	memcpy(ret->memory.data, &magic, size < sizeof(magic) ? size : sizeof(magic));
	memcpy(ret->semaphore.data, &value, sizeof(value));
}

static int open_directory(const char *root)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	_cleanup_close_ int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int directory;

	if (fd < 0)
		return -errno;
	directory = syscall(SYS_openat2, fd, SHM_DIRECTORY, &how, sizeof(how));
	return directory < 0 ? -errno : directory;
}

/* ---- dump ---- */

static int read_shared_file(int directory, const char *name, struct hsakmt_file *ret)
{
	/* O_NONBLOCK: a FIFO of this name is not waited for. */
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > HSAKMT_FILE_MAX)
		return -EFBIG;
	n = pread(fd, ret->data, sizeof(ret->data), 0);
	if (n < 0)
		return -errno;
	ret->size = (uint32_t)n;
	ret->mode = st.st_mode & 07777;
	ret->uid = st.st_uid;
	ret->gid = st.st_gid;
	return 0;
}

static void save_file(int directory, const char *name, struct hsakmt_file *ret)
{
	int err = read_shared_file(directory, name, ret);

	if (err && err != -ENOENT)
		pr_warn("/%s/%s is not saved: %s", SHM_DIRECTORY, name, strerror(-err));
}

void hsakmt_save(const char *root, struct hsakmt *ret)
{
	_cleanup_close_ int directory = open_directory(root);

	*ret = (struct hsakmt){ 0 };
	if (directory < 0)
		return;
	save_file(directory, MEMORY_NAME, &ret->memory);
	save_file(directory, SEMAPHORE_NAME, &ret->semaphore);
}

/* ---- restore ---- */

static int fill_file(int fd, const struct hsakmt_file *file)
{
	ssize_t n = pwrite(fd, file->data, file->size, 0);

	if (n != (ssize_t)file->size)
		return n < 0 ? -errno : -ENOSPC;
	if (fchown(fd, file->uid, file->gid) || fchmod(fd, file->mode & 0777))
		return -errno;
	return 0;
}

/* Made under another name and linked when it is complete; whoever links first has made it. */
static int make_file(int directory, const char *name, const struct hsakmt_file *file)
{
	_cleanup_close_ int fd = -1;
	char made[64];
	int err;

	snprintf(made, sizeof(made), "%s.criu-%d", name, getpid());
	unlinkat(directory, made, 0);
	fd = openat(directory, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = fill_file(fd, file);
	if (!err && linkat(directory, made, directory, name, 0))
		err = -errno;
	unlinkat(directory, made, 0);
	return err;
}

static void make_absent_file(int directory, const char *name, const struct hsakmt_file *file)
{
	int err = file->size && faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) ?
			  make_file(directory, name, file) : 0;

	if (err && err != -EEXIST)
		pr_warn("/%s/%s cannot be made again: %s; a process on ROCm before 6.0 may miss it", SHM_DIRECTORY, name,
			strerror(-err));
}

void hsakmt_restore(const char *root, const struct hsakmt *hsakmt)
{
	_cleanup_close_ int directory = -1;

	if (!hsakmt->memory.size && !hsakmt->semaphore.size)
		return;
	directory = open_directory(root);
	if (directory < 0) {
		pr_warn("/%s is not there: %s; a process on ROCm before 6.0 may miss its files", SHM_DIRECTORY,
			strerror(-directory));
		return;
	}
	make_absent_file(directory, MEMORY_NAME, &hsakmt->memory);
	make_absent_file(directory, SEMAPHORE_NAME, &hsakmt->semaphore);
}
