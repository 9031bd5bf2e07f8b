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

#include "image/image.h"
#include "amdgpu_plugin_util.h"

#define SHM_DIRECTORY  "dev/shm"
#define MEMORY_NAME    "hsakmt_shared_mem"
#define SEMAPHORE_NAME "sem.hsakmt_semaphore"

/* A semaphore of glibc's on 64-bit machines: 32 bytes, the value in the first word. */
#define SEMAPHORE_BYTES 32
#define SEMAPHORE_VALUE 1

/* What both files are made with by ROCm. */
#define FILE_MODE 0666

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

static int read_memory(int directory, struct hsakmt *ret)
{
	/* O_NONBLOCK: a FIFO of this name is not waited for. */
	_cleanup_close_ int fd = openat(directory, MEMORY_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > HSAKMT_MAX_BYTES)
		return -EFBIG;
	if (pread(fd, &ret->magic, sizeof(ret->magic), 0) < 0)
		return -errno;
	ret->bytes = (uint32_t)st.st_size;
	return 0;
}

void hsakmt_save(const char *root, struct hsakmt *ret)
{
	_cleanup_close_ int directory = open_directory(root);
	int err;

	*ret = (struct hsakmt){ 0 };
	if (directory < 0)
		return;
	err = read_memory(directory, ret);
	if (err && err != -ENOENT)
		pr_warn("/" SHM_DIRECTORY "/" MEMORY_NAME " is not saved: %s\n", strerror(-err));
}

/* ---- restore ---- */

static int fill_file(int fd, uint32_t first_word, uint32_t bytes)
{
	uint8_t data[HSAKMT_MAX_BYTES] = { 0 };
	ssize_t n;

	memcpy(data, &first_word, bytes < sizeof(first_word) ? bytes : sizeof(first_word));
	n = pwrite(fd, data, bytes, 0);
	if (n != (ssize_t)bytes)
		return n < 0 ? -errno : -ENOSPC;
	return fchmod(fd, FILE_MODE) ? -errno : 0;
}

/* Made without a name and linked when it is complete; whoever links first has made it. */
static int make_file(int directory, const char *name, uint32_t first_word, uint32_t bytes)
{
	_cleanup_close_ int fd = openat(directory, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	char path[32];
	int err;

	if (fd < 0)
		return -errno;
	err = fill_file(fd, first_word, bytes);
	if (err)
		return err;
	/* Takes CAP_DAC_READ_SEARCH; the other way a /proc, which a container may not have yet. */
	if (!linkat(fd, "", directory, name, AT_EMPTY_PATH))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static void make_absent_file(int directory, const char *name, uint32_t first_word, uint32_t bytes)
{
	int err = faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) ? make_file(directory, name, first_word, bytes) : 0;

	if (err && err != -EEXIST)
		pr_warn("/%s/%s cannot be made again: %s; a process on ROCm before 6.0 may miss it\n", SHM_DIRECTORY, name,
			strerror(-err));
}

void hsakmt_restore(const char *root, const struct hsakmt *hsakmt)
{
	_cleanup_close_ int directory = -1;

	if (!hsakmt->bytes)
		return;
	directory = open_directory(root);
	if (directory < 0) {
		pr_warn("/%s is not there: %s; a process on ROCm before 6.0 may miss its files\n", SHM_DIRECTORY,
			strerror(-directory));
		return;
	}
	make_absent_file(directory, MEMORY_NAME, hsakmt->magic, hsakmt->bytes);
	make_absent_file(directory, SEMAPHORE_NAME, SEMAPHORE_VALUE, SEMAPHORE_BYTES);
}
