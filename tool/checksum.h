/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums of the buffers in a pages file, by all processors. */
#ifndef TOOL_CHECKSUM_H
#define TOOL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* The next bytes of a stream: how many, 0 at its end, or -errno. */
typedef ssize_t (*checksum_read)(void *source, void *buffer, size_t size);

/* The same for a stream, in which each range begins where the one before it ends, and the first one here. */
int checksum_stream(checksum_read read, void *source, struct buffer_range *ranges, size_t nr,
		    checksum_progress progress, void *arg, struct checksum_error *ret_error);

#endif
