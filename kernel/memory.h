/* SPDX-License-Identifier: GPL-2.0-only */
/* How much memory the caller's cgroups leave it. */
#ifndef KERNEL_MEMORY_H
#define KERNEL_MEMORY_H

#include <stdint.h>

/* Bytes that the memory controller (cgroup v2, v1) allows the calling process. UINT64_MAX: all, or it is not known. */
uint64_t memory_allowed(void);

/* Bytes that copies may use: @wanted, or where that is 0 a part of what is allowed. 0: there is no limit. */
uint64_t memory_for_copies(uint64_t wanted);

#endif
