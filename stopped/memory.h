/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of stopped processes, and how much there is for what is saved of them. */
#ifndef STOPPED_MEMORY_H
#define STOPPED_MEMORY_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel.h"

/* Reads or writes memory of a stopped process, which the caller may trace. 0, or -errno after fail(). */
int memory_read(pid_t pid, uint64_t address, void *data, size_t size);
int memory_write(pid_t pid, uint64_t address, const void *data, size_t size);

/*
 * Gives a stopped task, which the caller may trace, pages of its own in the parts of @ranges that it may write: what a
 * write of it would do, with the same data. 0 or -errno of the first page for which that failed, no message; the
 * others are written all the same.
 */
int memory_unshare(pid_t pid, const struct svm_range *ranges, size_t nr);

/* Memory that the caller may still use for such files. */
struct memory_room {
	uint64_t bytes;	   /* UINT64_MAX: not known */
	char by[PATH_MAX]; /* what has the least: "the machine", or the directory of a cgroup */
};
void memory_ask_room(struct memory_room *ret);

#endif
