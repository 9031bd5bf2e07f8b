/* SPDX-License-Identifier: GPL-2.0-only */
/* Private memory that several processes still share (copy on write). */
#ifndef KERNEL_COW_H
#define KERNEL_COW_H

#include <stddef.h>
#include <sys/types.h>

#include "kernel/records.h"

/*
 * Gives a stopped task, which the caller may trace, pages of its own in the parts of @ranges that it may write: what a
 * write of it would do, with the same contents. 0 or -errno of the first page for which that failed, no message; the
 * others are written all the same.
 */
int cow_break(pid_t pid, const struct svm_range *ranges, size_t nr);

#endif
