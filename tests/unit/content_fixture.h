/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GPUs, BOs and pages files for tests of the content engine: memfds and temporary files.
 * Helpers that cannot do their work end the test program.
 */
#ifndef UNIT_CONTENT_FIXTURE_H
#define UNIT_CONTENT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"

/* A small generator: the same numbers for the same seed everywhere. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* 0 <= result < limit */
uint64_t rng_below(struct rng *rng, uint64_t limit);

enum fixture_fill {
	FILL_RANDOM,
	FILL_ZERO,
	FILL_MIXED,  /* runs of pages, half of them zero */
	FILL_SPARSE, /* single pages of data among nine of zeros each */
	FILL_NR,
};

int fixture_memfd(uint64_t bytes);
void fixture_fill(int fd, uint64_t bytes, enum fixture_fill how, struct rng *rng);
bool fixture_same(int fd_a, int fd_b, uint64_t bytes);

/* A GPU with @nr BOs. */
struct fixture_gpu {
	struct content_gpu gpu;
	uint64_t bytes; /* of all BOs */
};

/* BOs of the given sizes, with contents. The GPU has a render node, but no pages file yet. */
void fixture_gpu_init(struct fixture_gpu *f, uint32_t gpu_id, const uint64_t *sizes, size_t nr, enum fixture_fill how,
		      struct rng *rng);
/* A GPU to restore into: BOs of the same sizes, full of other bytes; checksums and pages file (shared) as @from has
 * them. */
void fixture_gpu_like(struct fixture_gpu *f, const struct fixture_gpu *from);
/* Closes all but the pages file. */
void fixture_gpu_done(struct fixture_gpu *f);
/* Whether all BOs have the same contents. */
bool fixture_gpus_same(const struct fixture_gpu *a, const struct fixture_gpu *b);

/* An unlinked file, read and write, in @dir. */
int fixture_file(const char *dir);
/* The pages file, read as the existing plugin writes it: length, then the contents of each BO. */
bool fixture_file_is_right(int fd, const struct fixture_gpu *f);
/* Writes it that way: dense. */
void fixture_write_file(int fd, const struct fixture_gpu *f);

/* A dump or restore with a cap of the staging memory (0: none), and all else as it is by default. */
static inline int fixture_dump(struct content_gpu *gpus, size_t nr_gpus, uint64_t max_bytes)
{
	const struct content_options options = { .max_buffer_bytes = max_bytes };

	return content_copy(CONTENT_DUMP, gpus, nr_gpus, &options);
}

static inline int fixture_restore(struct content_gpu *gpus, size_t nr_gpus, uint64_t max_bytes)
{
	const struct content_options options = { .max_buffer_bytes = max_bytes };

	return content_copy(CONTENT_RESTORE, gpus, nr_gpus, &options);
}

/* Directories of a file system on a disk and of one in memory. */
#define FIXTURE_DISK   "/var/tmp"
#define FIXTURE_MEMORY "/dev/shm"
/* What the engine should find out about O_DIRECT for a file. */
bool fixture_takes_direct(int fd);

/* The other end of a pipe, in a thread. */
struct fixture_peer;
/* Copies all that comes out of a pipe into @file; ret_fd is the end to write to. */
struct fixture_peer *fixture_reader(int file, int *ret_fd);
/* Writes @bytes of @file into a pipe, and closes it; ret_fd is the end to read from. */
struct fixture_peer *fixture_writer(int file, uint64_t bytes, int *ret_fd);
/* Waits for its end. */
void fixture_peer_join(struct fixture_peer *peer);

size_t fixture_open_fds(void);
size_t fixture_threads(void);

#endif
