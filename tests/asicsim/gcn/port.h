/* SPDX-License-Identifier: GPL-2.0-only */
/* What the core needs of whoever compiles it: the kernel module, or a program. */
#ifndef GCN_PORT_H
#define GCN_PORT_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/types.h>

static inline void *gcn_alloc(size_t size)
{
	return kvzalloc(size, GFP_KERNEL);
}

static inline void gcn_free(void *p)
{
	kvfree(p);
}
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

static inline void *gcn_alloc(size_t size)
{
	return calloc(1, size);
}

static inline void gcn_free(void *p)
{
	free(p);
}
#endif

#ifndef fallthrough
#define fallthrough __attribute__((__fallthrough__))
#endif

#define GCN_COUNT(array) (sizeof(array) / sizeof(*(array)))

#endif
