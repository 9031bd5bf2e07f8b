/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies between BOs and staging memory by a GPU's DMA engines, or by the CPU when the
 * GPU has no ring to submit to. One copier serves one GPU and belongs to one thread.
 *
 * Functions that return int give 0 or -errno, log nothing, and leave in copier.doing what
 * failed, for the caller's error line.
 */
#ifndef CONTENT_COPIER_H
#define CONTENT_COPIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libdrm/amdgpu.h>

#include "content/sdma.h"

#define COPIER_MAX_RINGS 2

struct copier_config {
	int render_fd; /* borrowed */
	void *staging; /* borrowed, anonymous memory of nr_slots x slot_bytes; page-aligned, as slot_bytes */
	uint64_t slot_bytes;
	unsigned int nr_slots;
	unsigned int fence_timeout_ms;
	bool to_staging; /* direction: a dump */
	/* Asked while a fence is waited for: true ends the wait with -ECANCELED. */
	bool (*stopped)(void *arg);
	void *stopped_arg;
};

/* A BO within reach of the copier. Zeroed: none. */
struct copier_bo {
	amdgpu_bo_handle bo;
	amdgpu_va_handle va;
	uint64_t address;   /* in the GPU's address space */
	uint64_t map_bytes; /* mapped there; 0 = not */
	void *cpu;	    /* CPU mapping, when the CPU copies */
	uint64_t cpu_bytes;
	int dmabuf_fd; /* borrowed */
};

/* What one ring does of a slot. */
struct copier_part {
	struct sdma_ib ib;
	uint64_t ib_address;
	struct amdgpu_cs_fence fence;
	bool in_flight;
	amdgpu_bo_handle *bos; /* used by the IB being built: staging, IB, then the others */
	size_t nr_bos;
};

struct copier {
	struct copier_config config;
	const char *doing;
	bool cpu;	     /* the CPU copies */
	uint32_t hung_rings; /* a fence did not signal in time: no other of the ring will */
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	struct sdma_rules rules;
	uint32_t rings[COPIER_MAX_RINGS];
	unsigned int nr_rings;
	struct copier_bo staging, ib;
	uint64_t part_bytes;	   /* of a slot; all rings work on each, so that one is done as soon as possible */
	uint64_t ib_bytes;	   /* for one part */
	size_t max_bos;		   /* room of copier_part.bos */
	struct copier_part *parts; /* those of a slot are neighbours, nr_rings of them */
	int bounce_fd;		   /* cpu: between a BO's mapping and staging memory */
};

/* After a failure copier_done() still has to be called. */
int copier_init(struct copier *copier, const struct copier_config *config);
/* Waits for all that is in flight, whatever config.stopped says. First error. */
int copier_drain(struct copier *copier);
/* Drains and releases everything but BOs; accepts a half-built copier. First error. */
int copier_done(struct copier *copier);

/* @dmabuf_fd is borrowed until copier_unmap_bo(). -EINVAL when the dma-buf is smaller than @size. */
int copier_map_bo(struct copier *copier, int dmabuf_fd, uint64_t size, struct copier_bo *bo);
/* Accepts a half-mapped BO; nothing may be in flight for it. */
int copier_unmap_bo(struct copier *copier, struct copier_bo *bo);

/*
 * Add to the next submission of @slot: a copy between the BO and the slot's staging memory,
 * or zeros for the BO, where @slot_off says which part of the slot they stand for. May
 * submit, and wait for, what was added before. The slot must not be in flight.
 */
int copier_copy(struct copier *copier, unsigned int slot, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
		uint64_t len);
int copier_zero(struct copier *copier, unsigned int slot, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
		uint64_t len);

/* Starts what was added for @slot. */
int copier_submit(struct copier *copier, unsigned int slot);
/* Waits until the GPU has done it; -ETIME after the time of the configuration. */
int copier_wait(struct copier *copier, unsigned int slot);

/* -EIO when the GPU was reset since copier_init(): contents may be lost although every copy was done. */
int copier_check_reset(struct copier *copier);

#endif
