// SPDX-License-Identifier: GPL-2.0-only
/*
 * Newer drivers take the pages of an SVM range once, and fail when one of them is copied meanwhile
 * (amdgpu_hmm_range_get_pages(); those of 6.1, and of 6.12 up to 6.12.113, try again): -EAGAIN. Programs repeat the
 * call then. RESUME cannot be repeated, so each page is written before. A page with one mapping can be copied, too:
 * when the other sharers are gone, Linux decides at the next write.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/uio.h>

#include "amdgpu_plugin_util.h"
#include "stopped/memory.h"

#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGES_AT_ONCE	512u

struct task_memory {
	pid_t pid;
	int pagemap;
	uint64_t page_size;
};

/* Writes the first byte of each page, as it is. What cannot be read (a guard page) is left out: -EFAULT at the end. */
static int write_pages(const struct task_memory *memory, const struct iovec *pages, unsigned long nr)
{
	uint8_t bytes[PAGES_AT_ONCE];
	int err = 0;

	while (nr) {
		struct iovec local = { bytes, nr };
		ssize_t done = process_vm_readv(memory->pid, &local, 1, pages, nr, 0);

		if (done > 0) {
			local.iov_len = (size_t)done;
			done = process_vm_writev(memory->pid, &local, 1, pages, (unsigned long)done, 0);
		}
		if (done < 0 && errno != EFAULT)
			return -errno;
		if (done <= 0) {
			err = -EFAULT;
			done = 1;
		}
		pages += done;
		nr -= (unsigned long)done;
	}
	return err;
}

/* What no process has touched yet stays so. */
static int copy_pages(const struct task_memory *memory, uint64_t start, uint64_t end)
{
	int first_err = 0;

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
		first_err = first_err ? first_err : err;
	}
	return first_err;
}

static uint64_t range_end(const struct svm_range *range)
{
	return range->start + range->size;
}

int memory_unshare(pid_t pid, const struct svm_range *ranges, size_t nr)
{
	_cleanup_close_ int pagemap = proc_open(pid, "pagemap", O_RDONLY);
	const struct task_memory memory = { pid, pagemap, (uint64_t)sysconf(_SC_PAGESIZE) };
	_cleanup_fclose_ FILE *maps = proc_file(pid, "maps");
	_cleanup_free_ struct svm_range *sorted = malloc(nr * sizeof(*sorted) + 1);
	_cleanup_free_ char *line = NULL;
	size_t size = 0, first = 0;
	int first_err = 0;

	if (!maps || pagemap < 0)
		return pagemap < 0 ? pagemap : -ENOENT;
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, ranges, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare_u64);
	/* Sorted ranges beside the mappings, which ascend: each is looked at once. */
	while (getline(&line, &size, maps) > 0) {
		uint64_t start, end;
		char access[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) != 3 || access[1] != 'w' ||
		    access[3] != 'p')
			continue;
		while (first < nr && range_end(&sorted[first]) <= start)
			first++;
		for (size_t i = first; i < nr && sorted[i].start < end; i++) {
			uint64_t from = sorted[i].start > start ? sorted[i].start : start;
			uint64_t to = range_end(&sorted[i]) < end ? range_end(&sorted[i]) : end;
			int err = from < to ? copy_pages(&memory, from, to) : 0;

			first_err = first_err ? first_err : err;
		}
	}
	return first_err;
}
