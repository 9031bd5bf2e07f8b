/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * By this a program says which of its GPU memory need not be saved: see docs/discard.md. For C and C++, Linux 3.17 and
 * later; with _GNU_SOURCE, as g++ has it.
 */
#ifndef AMDGPU_DISCARD_H
#define AMDGPU_DISCARD_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AMDGPU_DISCARD_MAX 65536u

struct amdgpu_discard_range {
	uint64_t address, bytes; /* as hipMalloc() has returned it, or within */
};

/* In memory that the plugin reads when the program is stopped. */
struct amdgpu_discard {
	char magic[8];
	uint32_t nr, unused;
	struct amdgpu_discard_range ranges[AMDGPU_DISCARD_MAX];
};

/* An empty table, which lasts as long as the process. NULL with errno. A child of fork() does not have it. */
static inline struct amdgpu_discard *amdgpu_discard_new(void)
{
	int fd = memfd_create("amdgpu-discard", MFD_CLOEXEC);
	void *memory = MAP_FAILED;
	struct amdgpu_discard *table;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, sizeof(*table)))
		memory = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, sizeof(*table), MADV_DONTFORK);
	table = (struct amdgpu_discard *)memory;
	memcpy(table->magic, "AMDGDSC1", sizeof(table->magic));
	return table;
}

/* From now on these ranges, AMDGPU_DISCARD_MAX at most, and no others. None (0) before the memory is used again. */
static inline void amdgpu_discard_set(struct amdgpu_discard *table, const struct amdgpu_discard_range *ranges, uint32_t nr)
{
	__atomic_store_n(&table->nr, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < nr; i++)
		table->ranges[i] = ranges[i];
	__atomic_store_n(&table->nr, nr, __ATOMIC_SEQ_CST);
}

#endif
