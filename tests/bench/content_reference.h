/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the content engine is measured against: a plain multi-buffered copy loop between
 * memory and a file, two threads and four buffers for each stream, and nothing else.
 */
#ifndef BENCH_CONTENT_REFERENCE_H
#define BENCH_CONTENT_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reference_stream {
	uint8_t *mem;
	int file;
	uint64_t bytes; /* whole blocks of 4 KiB */
	bool to_file, direct;
	unsigned int nr_buffers;
	uint64_t buffer_bytes;
	int err; /* out: 0 or -errno */
};

/* All streams at the same time. Seconds; -errno of one of them in *ret_err. */
double reference_run(struct reference_stream *streams, size_t nr, int *ret_err);

#endif
