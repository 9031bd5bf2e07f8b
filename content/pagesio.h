/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One pages file, or a pipe in its place: aligned windows in, aligned windows out. Knows nothing of BOs and GPUs.
 *
 * A window comes with a map of one byte for each of its blocks of LAYOUT_BLOCK_BYTES: zero = the block has only zeros.
 * Window offsets and memory are aligned to blocks, memory has room for whole blocks.
 */
#ifndef CONTENT_PAGESIO_H
#define CONTENT_PAGESIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pagesio {
	int fd; /* borrowed; every further lane has one of its own */
	bool streaming;
	bool want_direct; /* transfers of whole blocks are to be direct */
	bool direct;	  /* O_DIRECT is on */
	bool in_memory; /* a file system in memory, or a pipe */
	int flags;	  /* of fd, as they were; -1 = not changed */
	uint64_t file_bytes;
	uint64_t flush_from, flush_to; /* written through the page cache, to be dropped from it */
	/* What is known of the file: a hole, and data behind it. Nothing at first. */
	uint64_t hole_from, data_from, data_to;
	bool some_cached; /* of what was read: it was in the page cache */
	uint64_t at; /* offset of the failure */
	const atomic_int *stop; /* not 0 ends a wait for a pipe with -ECANCELED. NULL = waits on */
};

/* Whether its file system is in memory: transfers are copies by a processor. */
bool pagesio_in_memory(int fd);

/* The following return 0 or -errno with @at filled in. */

/* For writing @file_bytes into fd. Drops what the file held. */
int pagesio_create(struct pagesio *io, int fd, bool streaming, uint64_t file_bytes);
int pagesio_write(struct pagesio *io, uint64_t off, const void *mem, uint64_t len, const uint8_t *map);
/*
 * The end of a file that is complete: its length prefix, which is missing until then so that an interrupted dump never
 * looks like a whole one. A stream has it in its first window.
 */
int pagesio_complete(struct pagesio *io);

/*
 * For a further lane: @io is the file of @first, opened again, as O_DIRECT belongs to the open file. 0 or -errno, no
 * message. Not for streams.
 */
int pagesio_open_again(struct pagesio *io, const struct pagesio *first);
/* What @io has written is complete but for what others write. */
int pagesio_flush(struct pagesio *io);
/* The end of such a one, whose thread has ended: closes its file. */
int pagesio_join(struct pagesio *first, struct pagesio *io);

/* After a failure: gives the space of an unfinished file back. */
void pagesio_discard(struct pagesio *io);

/* For reading: checks the length of the file and its prefix. */
int pagesio_open(struct pagesio *io, int fd, bool streaming, uint64_t file_bytes);
/* Reads what the map, filled in here, has as data; memory of holes is left alone. */
int pagesio_read(struct pagesio *io, uint64_t off, void *mem, uint64_t len, uint8_t *map);
/* The end of a stream: nothing may follow. */
int pagesio_check_end(struct pagesio *io);

/* Neighbouring blocks of a window that are alike, in bytes of it. All zero in front of the first. */
struct extent {
	uint64_t from, to;
	bool data;
};

/* The next extent of a window of @len bytes; false: there are no more. */
bool pagesio_next_extent(const uint8_t *map, uint64_t len, struct extent *extent);

/* Gives fd its flags back. To be called after a failed open, too, but not without an open. */
void pagesio_done(struct pagesio *io);

#endif
