/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums of the buffers in a pages file. */
#ifndef TOOL_CHECKSUM_H
#define TOOL_CHECKSUM_H

#include "content/content.h"

/* Told now and then how many bytes are done. */
typedef void (*checksum_progress)(void *arg, uint64_t done);

/* What has been read of a pages file, from its beginning on. */
struct checksum {
	struct content_bo *bos; /* borrowed; crc32c is set */
	const uint64_t *starts; /* borrowed, content_starts() */
	size_t nr, bo;		/* of all, and which comes next */
	uint64_t at;
	checksum_progress progress;
	void *arg;
};

/* The next bytes of the file; @data NULL: zeros. What is behind the last buffer is passed over. */
void checksum_add(struct checksum *sum, const void *data, uint64_t size);

/* Reads the file @fd; its holes are zeros that nobody reads. 0, or -errno without a message; sum->at has the place. */
int checksum_file(struct checksum *sum, int fd);

/* Whether all buffers have been read. */
static inline bool checksum_is_whole(const struct checksum *sum)
{
	return sum->bo == sum->nr;
}

#endif
