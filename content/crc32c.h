/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRC-32C (Castagnoli, as in iSCSI, ext4 and RFC 3720): initial value 0, chained by giving
 * the result of one call to the next.
 */
#ifndef CONTENT_CRC32C_H
#define CONTENT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* As crc32c() over @len bytes of zero, in time that hardly depends on @len. */
uint32_t crc32c_zeros(uint32_t crc, uint64_t len);

/* Of two ranges that follow each other, from the CRC of each; @len: bytes of the second. */
uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t len);

/* The implementations for processors without the newer instructions, and without any; the same result. */
uint32_t crc32c_lanes(uint32_t crc, const void *data, size_t len);
uint32_t crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
