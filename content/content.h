/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data of GPU buffers: between BOs and pages images, in both directions. A pages image is an 8-byte little-endian
 * length and then the data of the BOs of one GPU, back to back in the given order. Memory use depends on the options
 * only.
 */
#ifndef CONTENT_CONTENT_H
#define CONTENT_CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a copier reaches memory. The engine's own: zero before and after a run. */
struct content_mapping {
	struct amdgpu_bo *bo; /* of libdrm_amdgpu, like va */
	struct amdgpu_va *va;
	uint64_t address;   /* in the GPU's address space */
	uint64_t map_bytes; /* mapped there; 0 = not */
	void *cpu;	    /* CPU mapping */
};

struct content_bo {
	int dmabuf_fd;	 /* borrowed */
	uint32_t index;	 /* the caller's number of the BO, for messages */
	uint64_t size;	 /* bytes, at least 1, at most those of the dma-buf */
	uint32_t crc32c; /* CRC-32C of the data: written by a dump, compared by a restore */
	bool has_crc32c; /* set by a dump; a restore compares only where it is set */
	struct content_mapping mapping;
};

struct content_range {
	uint64_t from, to; /* offsets */
};

struct content_stats {
	uint64_t bytes;	     /* copied */
	uint64_t zero_bytes; /* of these: in blocks of zeros, which are holes in a file */
	double seconds;
	bool direct; /* all of it without the page cache */
};

struct content_gpu {
	uint32_t gpu_id;	/* for messages, as pid */
	int pid;		/* for messages; 0: unknown, criu's log has it in its prefix */
	int render_fd;		/* borrowed; a file of the render node that the plugin opened itself */
	int pages_fd;		/* borrowed; the caller closes it and checks that. Its file position is used */
	char pages_name[64];	/* for messages */
	bool streaming;		/* pages_fd is a pipe: once, in order, no seek, no holes, no O_DIRECT */
	struct content_bo *bos;
	size_t nr_bos;
	/* Of a dump: ranges of the file, ascending and apart, whose whole blocks of 4 KiB are zeros and are not copied. Borrowed. */
	const struct content_range *discarded;
	size_t nr_discarded;
	struct content_stats stats; /* out; while it runs, for on_progress: bytes so far */
};

struct content_options {
	uint64_t max_buffer_bytes;     /* cap of the staging memory of all GPUs together, 0 = 128 MiB each */
	unsigned int fence_timeout_ms; /* how long a GPU may take for one submission, 0 = 30000 */
	/* Called every progress_ms in the caller's thread while a GPU copies, and when it has. NULL = not. */
	void (*on_progress)(void *arg, const struct content_gpu *gpu);
	void *progress_arg;
	unsigned int progress_ms; /* 0 = 200 */
	const atomic_bool *is_cancelled; /* looked at as often: ends the run with -ECANCELED, no message. NULL = not */
	/*
	 * Asked in the same thread at first and when a GPU has copied all that it had, while other GPUs go on: puts what it has
	 * to copy next, with its files, in the place of that: 1. There is nothing more: 0; nothing yet: -EAGAIN, and it is asked
	 * again; another -errno ends the run. NULL = each GPU has what it copies.
	 */
	int (*next)(void *arg, struct content_gpu *gpu);
	void *next_arg;
	struct content_tally *tally; /* NULL = none */
};

/* What several runs have done, also of several processes, which share it then. All zero before the first. */
struct content_tally {
	_Atomic uint64_t bytes, zero_bytes;	   /* as in stats, of what was copied to its end */
	_Atomic uint64_t began_ns, ended_ns;	   /* of the first copy and the last, by the kernel's own clock */
	_Atomic uint64_t buffer_bytes, most_bytes; /* staging memory now, and the most at one time */
};

enum content_direction { CONTENT_DUMP, CONTENT_RESTORE };

/*
 * Saves or restores the data of all BOs of all GPUs, the GPUs in parallel, and logs one line for each. The smallest
 * staging memory is one page for a GPU. 0, or -errno of the first cause, in whatever thread, which names GPU, BO and
 * offset. All threads have ended and everything is released in either case.
 */
int content_copy(enum content_direction direction, struct content_gpu *gpus, size_t nr_gpus,
		 const struct content_options *options);

/*
 * What is wrong with a pages file before it is read: its length, and the length that it announces; a restore finds the same,
 * later. 0 or -errno.
 */
int content_check_file(const struct content_gpu *gpu);

/*
 * The rules of a pages file whose BOs need @file_bytes: its length, the length that it begins with, and the CRC-32C of all data
 * of a BO. 0, or -EBADMSG after fail().
 */
int content_check_size(uint64_t size, uint64_t file_bytes);
int content_check_prefix(const uint8_t *prefix, uint64_t file_bytes);
int content_check_crc(const struct content_bo *bo, uint32_t crc);
/* All buffers of a GPU together: longer files cannot be read and written everywhere. */
#define CONTENT_MAX_BYTES (INT64_MAX - (1ull << 27))

/*
 * Where in a pages file the data of each BO begin, and behind the last one the end of the file: nr_bos + 1 offsets
 * that the caller frees. 0, -EINVAL (an empty BO), -EOVERFLOW (more than a file can have) or -ENOMEM, no message.
 */
int content_starts(const struct content_bo *bos, size_t nr_bos, uint64_t **ret);

/* The first of @nr ranges, ascending and apart, that ends behind @at; @nr: none. */
size_t content_find_range(const struct content_range *ranges, size_t nr, uint64_t at);

/*
 * CRC-32C (Castagnoli, as in iSCSI, ext4 and RFC 3720): initial value 0, chained by giving the result of one call to the
 * next.
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* As crc32c() over @len bytes of zero, in time that hardly depends on @len. */
uint32_t crc32c_zeros(uint32_t crc, uint64_t len);
/* What the CRC @crc of some bytes adds to that of these and @len more behind them. */
uint32_t crc32c_shift(uint32_t crc, uint64_t len);
/* The implementations for processors without the newer instructions, and without any; the same result. */
uint32_t crc32c_lanes(uint32_t crc, const void *data, size_t len);
uint32_t crc32c_bytes(uint32_t crc, const void *data, size_t len);

#endif
