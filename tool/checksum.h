/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums of the buffers in a pages file, by all processors. */
#ifndef TOOL_CHECKSUM_H
#define TOOL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* A buffer's range of a file. */
struct buffer_range {
	uint64_t from, size; /* bytes */
	uint32_t crc32c;     /* out */
};

struct checksum_error {
	int err;     /* -errno */
	uint64_t at; /* offset */
};

/* Told now and then how many bytes are done. */
typedef void (*checksum_progress)(void *arg, uint64_t done);

/*
 * Reads all @ranges of the file @fd, which lie inside it and behind each other, and sets their CRCs. Memory does not
 * grow with the file. 0; -errno with the place in *ret_error where reading failed, without a message.
 */
int checksum_ranges(int fd, struct buffer_range *ranges, size_t nr, checksum_progress progress, void *arg,
		    struct checksum_error *ret_error);

#endif
