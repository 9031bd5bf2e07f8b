// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux 7.2 takes the pages of an SVM range once, and fails when one of them is copied meanwhile
 * (amdgpu_hmm_range_get_pages(); Linux 6.12 tries again for a second): -EAGAIN. Programs repeat the call then. RESUME
 * cannot be repeated, so the pages of forked processes are copied before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cow.h"

#define PAGEMAP_EXCLUSIVE (1ull << 56)
#define PAGEMAP_FILE	  (1ull << 61) /* a page of the file, not of the process */
#define PAGEMAP_PRESENT	  (1ull << 63)
#define PAGES_AT_ONCE	  512u

struct task_memory {
	int mem, pagemap;
	uint64_t page_size;
};

static bool is_shared(uint64_t entry)
{
	return entry & PAGEMAP_PRESENT && (entry & PAGEMAP_FILE || !(entry & PAGEMAP_EXCLUSIVE));
}

static int copy_page(const struct task_memory *memory, uint64_t address)
{
	char byte;

	errno = 0;
	if (pread(memory->mem, &byte, 1, (off_t)address) == 1 && pwrite(memory->mem, &byte, 1, (off_t)address) == 1)
		return 0;
	return errno ? -errno : -EIO;
}

static int copy_pages(const struct task_memory *memory, uint64_t start, uint64_t end)
{
	uint64_t entries[PAGES_AT_ONCE];

	while (start < end) {
		uint64_t nr = (end - start) / memory->page_size;
		ssize_t got;

		nr = nr < PAGES_AT_ONCE ? nr : PAGES_AT_ONCE;
		got = pread(memory->pagemap, entries, nr * sizeof(*entries),
			    (off_t)(start / memory->page_size * sizeof(*entries)));
		if (got != (ssize_t)(nr * sizeof(*entries)))
			return got < 0 ? -errno : -EIO;
		for (uint64_t i = 0; i < nr; i++, start += memory->page_size) {
			int err = is_shared(entries[i]) ? copy_page(memory, start) : 0;

			if (err)
				return err;
		}
	}
	return 0;
}

static int copy_ranges(const struct task_memory *memory, uint64_t start, uint64_t end, const struct svm_range *ranges,
		       size_t nr)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		uint64_t from = ranges[i].start > start ? ranges[i].start : start;
		uint64_t to = ranges[i].start + ranges[i].size < end ? ranges[i].start + ranges[i].size : end;

		if (from < to)
			err = copy_pages(memory, from, to);
	}
	return err;
}

static int copy_all(const struct task_memory *memory, FILE *maps, const struct svm_range *ranges, size_t nr)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, maps) > 0) {
		uint64_t start, end;
		char access[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) == 3 && access[1] == 'w' &&
		    access[3] == 'p')
			err = copy_ranges(memory, start, end, ranges, nr);
	}
	return err;
}

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cow_break(pid_t pid, const struct svm_range *ranges, size_t nr)
{
	_cleanup_close_ int mem = open_proc(pid, "mem", O_RDWR), pagemap = open_proc(pid, "pagemap", O_RDONLY);
	const struct task_memory memory = { mem, pagemap, (uint64_t)sysconf(_SC_PAGESIZE) };
	_cleanup_close_ int fd = open_proc(pid, "maps", O_RDONLY);
	_cleanup_fclose_ FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (mem < 0 || pagemap < 0 || fd < 0)
		return mem < 0 ? mem : pagemap < 0 ? pagemap : fd;
	if (!maps)
		return -errno;
	fd = -1;
	return copy_all(&memory, maps, ranges, nr);
}
