/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data that tells where it belongs: every 64-bit word follows from a seed and
 * from its own offset, so a lost, stale, shifted or foreign byte is seen.
 */
#ifndef WORKLOADS_PATTERN_H
#define WORKLOADS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern_diff {
	uint64_t offset; /* of the first wrong byte, in the pattern */
	uint8_t want, got;
};

/* Fills @buf with the bytes of pattern @seed that lie at [@offset, @offset + @len). Any alignment. */
void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t offset);

/* True when every byte is as pattern_fill() would write it, else *diff says where the first is not. */
bool pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t offset, struct pattern_diff *diff);

#endif
