/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies between BOs and staging memory by a GPU's DMA engines. Each lane of a GPU has a copier;
 * libdrm gives them one device, so that what one of them has mapped serves all.
 *
 * Functions that return int give 0 or -errno; their texts say what was done, and the caller puts the GPU in front.
 */
#ifndef CONTENT_COPIER_H
#define CONTENT_COPIER_H

#include <stdbool.h>
#include <stdint.h>

#include <libdrm/amdgpu.h>

#include "content/content.h"

struct copier_config {
	int render_fd; /* borrowed */
	void *staging; /* borrowed, anonymous memory of nr_slots x slot_bytes; page-aligned, as slot_bytes */
	uint64_t slot_bytes;
	unsigned int nr_slots;
	unsigned int first_ring; /* copiers that differ in it share the rings out, where slots are too small for several */
	unsigned int fence_timeout_ms;
	bool to_staging; /* direction: a dump */
	const atomic_int *stop; /* not 0 ends a wait for a fence with -ECANCELED. NULL = waits on */
};

#define COPIER_MAX_RINGS 2

/* The copier's own. */
struct copier {
	struct copier_config config;
	amdgpu_device_handle device;
	uint32_t hung_rings; /* a bit for each: a fence did not signal in time: no other fence of the ring will */
	amdgpu_context_handle context;
	uint32_t rings[COPIER_MAX_RINGS];
	unsigned int nr_rings;
	struct content_mapping *staging; /* of each slot, from its first use on */
	struct content_mapping ib;
	uint64_t part_bytes;	/* of a slot; all rings work on each, so that one is done as soon as possible */
	uint64_t ib_bytes;	/* for one part */
	size_t max_bos;		/* room of dma_part.bos */
	int64_t clock_offset;	/* monotonic_offset_ns() */
	struct dma_part *parts; /* those of a slot are neighbours, nr_rings of them */
};

/* After a failure copier_done() still has to be called. */
int copier_init(struct copier *copier, const struct copier_config *config);
/* Waits for all that is in flight, whatever config.stop says. First error. */
int copier_drain(struct copier *copier);
/* Releases everything but BOs, when it is drained; accepts a half-built copier. First error. */
int copier_done(struct copier *copier);

/* Sets bo->mapping. -EINVAL when the dma-buf is smaller than the BO. */
int copier_map_bo(struct copier *copier, struct content_bo *bo);
/* Accepts a half-mapped BO; nothing may be in flight for it. */
int copier_unmap_bo(struct content_bo *bo);

/*
 * Adds to the next submission of @slot: @data, a copy between the BO and the slot's staging memory, or zeros for the BO,
 * where @slot_off says which range of the slot they stand for. May submit, and wait for, what was added before. The slot
 * must not be in flight.
 */
int copier_add(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off, uint64_t slot_off,
	       uint64_t len, bool data);

/* Starts what was added for @slot. */
int copier_submit(struct copier *copier, unsigned int slot);
/* Waits until the GPU has done it; -ETIME after the time that the configuration allows. */
int copier_wait(struct copier *copier, unsigned int slot);

/* -EIO when the GPU was reset since copier_init(): data may be lost although every copy was done. */
int copier_check_reset(struct copier *copier);

#endif
