// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux 7.2 takes the pages of an SVM range once, and fails when one of them is copied meanwhile
 * (amdgpu_hmm_range_get_pages(); Linux 6.12 tries again for a second): -EAGAIN. Programs repeat the call then. RESUME
 * cannot be repeated, so each page is written before. That a page is mapped once does not help: when others have gone,
 * Linux finds out at the first write whether it may keep the page.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/uio.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cow.h"

#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGES_AT_ONCE	512u

struct task_memory {
	pid_t pid;
	int pagemap;
	uint64_t page_size;
};

/* Writes the first byte of each page, as it is. */
static int write_pages(const struct task_memory *memory, const struct iovec *pages, unsigned long nr)
{
	uint8_t bytes[PAGES_AT_ONCE];
	const struct iovec local = { bytes, nr };

	errno = 0;
	if (!nr || (process_vm_readv(memory->pid, &local, 1, pages, nr, 0) == (ssize_t)nr &&
		    process_vm_writev(memory->pid, &local, 1, pages, nr, 0) == (ssize_t)nr))
		return 0;
	return errno ? -errno : -EFAULT;
}

/* What no process has touched yet stays so. */
static int copy_pages(const struct task_memory *memory, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t entries[PAGES_AT_ONCE], nr = (end - start) / memory->page_size;
		struct iovec pages[PAGES_AT_ONCE];
		unsigned long nr_pages = 0;
		ssize_t got;
		int err;

		nr = nr < PAGES_AT_ONCE ? nr : PAGES_AT_ONCE;
		got = pread(memory->pagemap, entries, nr * sizeof(*entries),
			    (off_t)(start / memory->page_size * sizeof(*entries)));
		if (got != (ssize_t)(nr * sizeof(*entries)))
			return got < 0 ? -errno : -EIO;
		for (uint64_t i = 0; i < nr; i++, start += memory->page_size)
			if (entries[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED))
				pages[nr_pages++] = (struct iovec){ (void *)(uintptr_t)start, 1 };
		err = write_pages(memory, pages, nr_pages);
		if (err)
			return err;
	}
	return 0;
}

static int copy_ranges(const struct task_memory *memory, uint64_t start, uint64_t end, const struct svm_range *ranges,
		       size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t from = ranges[i].start > start ? ranges[i].start : start;
		uint64_t to = ranges[i].start + ranges[i].size < end ? ranges[i].start + ranges[i].size : end;

		int err = from < to ? copy_pages(memory, from, to) : 0;

		if (err)
			return err;
	}
	return 0;
}

static int copy_all(const struct task_memory *memory, FILE *maps, const struct svm_range *ranges, size_t nr)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, maps) > 0) {
		uint64_t start, end;
		char access[5];
		int err = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) == 3 && access[1] == 'w' &&
		    access[3] == 'p')
			err = copy_ranges(memory, start, end, ranges, nr);
		if (err)
			return err;
	}
	return 0;
}

static int open_proc(pid_t pid, const char *name)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cow_break(pid_t pid, const struct svm_range *ranges, size_t nr)
{
	_cleanup_close_ int pagemap = open_proc(pid, "pagemap"), fd = open_proc(pid, "maps");
	const struct task_memory memory = { pid, pagemap, (uint64_t)sysconf(_SC_PAGESIZE) };
	_cleanup_fclose_ FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (pagemap < 0 || fd < 0)
		return pagemap < 0 ? pagemap : fd;
	if (!maps)
		return -errno;
	fd = -1;
	return copy_all(&memory, maps, ranges, nr);
}
