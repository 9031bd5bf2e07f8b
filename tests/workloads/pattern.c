// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded patterns.
 *
 * One multiplication and one shift per word: the machine that runs this is emulated,
 * and filling gigabytes must stay cheap. Odd ends are compared byte by byte.
 */
#include <string.h>

#include "pattern.h"

/* Odd, so that the product is a bijection of the word's number: no two words of a seed are equal. */
#define PATTERN_MULTIPLIER 0x9e3779b97f4a7c15ULL

static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t x = (index ^ (seed << 32 | seed >> 32)) * PATTERN_MULTIPLIER;

	return x ^ (x >> 29) ^ seed;
}

static inline uint8_t pattern_byte(uint64_t seed, uint64_t offset)
{
	return (uint8_t)(pattern_word(seed, offset / 8) >> (offset % 8 * 8));
}

void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t offset)
{
	uint8_t *p = buf;

	for (; len && offset % 8; len--)
		*p++ = pattern_byte(seed, offset++);
	for (; len >= 8; len -= 8, p += 8, offset += 8) {
		uint64_t word = pattern_word(seed, offset / 8);

		memcpy(p, &word, sizeof(word));
	}
	while (len--)
		*p++ = pattern_byte(seed, offset++);
}

static bool bytes_check(const uint8_t *p, size_t len, uint64_t seed, uint64_t offset, struct pattern_diff *diff)
{
	for (; len--; p++, offset++) {
		uint8_t want = pattern_byte(seed, offset);

		if (*p == want)
			continue;
		*diff = (struct pattern_diff){ .offset = offset, .want = want, .got = *p };
		return false;
	}
	return true;
}

bool pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t offset, struct pattern_diff *diff)
{
	const uint8_t *p = buf;
	size_t head = -offset % 8;

	if (head > len)
		head = len;
	if (!bytes_check(p, head, seed, offset, diff))
		return false;
	for (p += head, len -= head, offset += head; len >= 8; len -= 8, p += 8, offset += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		if (word != pattern_word(seed, offset / 8))
			return bytes_check(p, 8, seed, offset, diff);
	}
	return bytes_check(p, len, seed, offset, diff);
}
