// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data that a program does not need (docs/discard.md). It says so in a memfd that it has mapped: the table is read from
 * its memory, and no file system is asked. Of a wrong table nothing counts.
 */
#define _GNU_SOURCE
#include "pages/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define TABLE_NAME    "amdgpu-discard"
#define TABLE_PATH    " /memfd:" TABLE_NAME " (deleted)\n"
#define TABLE_MAGIC   "AMDGDSC1"
#define TABLES_MAX_NR 65536u

/* As programs have it from docs/examples/discard/amdgpu_discard.h. */
struct table_head {
	char magic[8];
	uint32_t nr, unused;
};

struct table_entry {
	uint64_t address, bytes; /* of the GPU's address space */
};

/* The tables of a task, while they are read. */
struct tables {
	int memory; /* of the task */
	uint32_t nr_read; /* ranges of them all: a program could map a table many times */
	struct discard *discard;
};

/* A table at @start of the task's memory. */
static int read_table(struct tables *tables, uint64_t start, uint64_t bytes)
{
	_cleanup_free_ struct table_entry *entries = NULL;
	struct table_head head;
	size_t size;

	if (bytes < sizeof(head) || pread(tables->memory, &head, sizeof(head), (off_t)start) != sizeof(head))
		return -EIO;
	if (memcmp(head.magic, TABLE_MAGIC, sizeof(head.magic)))
		return -EBADMSG;
	if (head.nr > TABLES_MAX_NR - tables->nr_read || head.nr > (bytes - sizeof(head)) / sizeof(*entries))
		return -E2BIG;
	tables->nr_read += head.nr;
	size = head.nr * sizeof(*entries);
	entries = malloc(size + 1);
	if (!entries)
		return -ENOMEM;
	if (pread(tables->memory, entries, size, (off_t)(start + sizeof(head))) != (ssize_t)size)
		return -EIO;
	for (uint32_t i = 0; i < head.nr; i++) {
		uint64_t end;

		if (add_overflows(entries[i].address, entries[i].bytes, &end))
			return -EOVERFLOW;
		if (entries[i].bytes && array_add(tables->discard->ranges, tables->discard->nr,
						  (struct content_range){ entries[i].address, end }))
			return -ENOMEM;
	}
	return 0;
}

static int read_tables(pid_t pid, struct discard *discard)
{
	_cleanup_close_ int memory = proc_open(pid, "mem", O_RDONLY), fd = proc_open(pid, "maps", O_RDONLY);
	_cleanup_fclose_ FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	struct tables tables = { .memory = memory, .discard = discard };
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	int err = 0;

	if (memory < 0 || fd < 0)
		return memory < 0 ? memory : fd;
	if (!maps)
		return -errno;
	steal_fd(&fd);
	while (!err && getline(&line, &room, maps) > 0) {
		_cleanup_close_ int memfd = -1;
		unsigned int major, minor;
		uint64_t start, end;
		struct stat st;

		if (!strstr(line, TABLE_PATH) ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s 00000000 %x:%x", &start, &end, &major, &minor) != 4)
			continue;
		/* On the device of all memfds without huge pages: other files may have the name, too. */
		memfd = memfd_create(TABLE_NAME, MFD_CLOEXEC);
		if (memfd >= 0 && !fstat(memfd, &st) && makedev(major, minor) == st.st_dev)
			err = read_table(&tables, start, end - start);
	}
	return err;
}

void discard_read(pid_t pid, struct discard *ret)
{
	struct content_range *ranges;
	size_t nr = 0;
	int err;

	*ret = (struct discard){ 0 };
	err = read_tables(pid, ret);
	if (err) {
		pr_warn("pid %d: all is saved: its table of memory that need not be (memfd " TABLE_NAME ") cannot be read: %s\n",
			pid, strerror(-err));
		discard_done(ret);
	}
	if (!ret->nr)
		return;
	/* In ascending order, and apart. */
	ranges = ret->ranges;
	qsort(ranges, ret->nr, sizeof(*ranges), compare_u64);
	for (size_t i = 1; i < ret->nr; i++) {
		if (ranges[i].from > ranges[nr].to)
			ranges[++nr] = ranges[i];
		else if (ranges[i].to > ranges[nr].to)
			ranges[nr].to = ranges[i].to;
	}
	ret->nr = nr + 1;
}

void discard_done(struct discard *discard)
{
	free(discard->ranges);
	*discard = (struct discard){ 0 };
}

int discard_in_bo(const struct discard *discard, const struct bo *bo, uint64_t file_off, struct discard *ret)
{
	uint64_t end = bo->addr + bo->size;

	for (size_t i = content_find_range(discard->ranges, discard->nr, bo->addr); i < discard->nr && discard->ranges[i].from < end; i++) {
		const struct content_range *range = &discard->ranges[i];
		uint64_t from = range->from > bo->addr ? range->from - bo->addr : 0;
		uint64_t to = (range->to < end ? range->to : end) - bo->addr;

		if (!from && ret->nr && ret->ranges[ret->nr - 1].to == file_off)
			ret->ranges[ret->nr - 1].to = file_off + to;
		else if (array_add(ret->ranges, ret->nr, (struct content_range){ file_off + from, file_off + to }))
			return -ENOMEM;
	}
	return 0;
}
