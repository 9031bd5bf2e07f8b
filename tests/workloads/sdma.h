/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-mode SDMA queues: a ring in GTT, read and write pointers in pages of
 * their own, a doorbell. Pointers are bytes and never wrap; places in the ring do.
 *
 * Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_SDMA_H
#define WORKLOADS_SDMA_H

#include <stdint.h>

#include "kfd.h"

/* Copies are split into packets of at most this: every SDMA generation can. */
#define SDMA_MAX_COPY_BYTES (1u << 20)

struct sdma_queue {
	struct kfd *kfd;
	struct kfd_gpu *gpu;
	struct kfd_bo ring, rptr, wptr;
	uint32_t queue_id;
	volatile uint64_t *doorbell;
	uint64_t put; /* bytes written into the ring, of which the GPU was told up to the last kick */
	uint32_t *ib; /* where packets go instead, while an indirect buffer is made */
	uint32_t ib_dwords;
};

int sdma_create(struct kfd *kfd, struct kfd_gpu *gpu, uint32_t ring_bytes, struct sdma_queue *queue);
/* Does nothing with a queue that was not created. */
int sdma_destroy(struct sdma_queue *queue);

/* Packets. The GPU sees them with the next kick; a full ring is kicked and waited for. */
int sdma_copy(struct sdma_queue *queue, uint64_t dst, uint64_t src, uint64_t bytes);
/* The same, with a kick, and sleeps until the ring is empty. */
int sdma_copy_now(struct sdma_queue *queue, uint64_t dst, uint64_t src, uint64_t bytes);
/* @bytes in whole dwords. */
int sdma_fill(struct sdma_queue *queue, uint64_t dst, uint32_t value, uint64_t bytes);
/* Writes @value to the dword at @dst when all packets before it are done. */
int sdma_fence(struct sdma_queue *queue, uint64_t dst, uint32_t value);
/* Adds to the 64-bit word at @dst: a packet that is lost or done twice shows for ever. */
int sdma_add(struct sdma_queue *queue, uint64_t dst, uint64_t value);
/* Stops the queue until the dword at @src is @value. */
int sdma_wait_memory(struct sdma_queue *queue, uint64_t src, uint32_t value);
/* Interrupt with @context_id: wakes who waits for the event of this id. */
int sdma_trap(struct sdma_queue *queue, uint32_t context_id);

/*
 * From now on packets go to @ib, memory that the GPU has at the same address, a multiple of 32. sdma_ib_end() puts a packet
 * into the ring that leads there; until the GPU has done it, the memory stays as it is.
 */
void sdma_ib_begin(struct sdma_queue *queue, void *ib);
int sdma_ib_end(struct sdma_queue *queue);

void sdma_kick(struct sdma_queue *queue);

/* What the GPU has taken out of the ring. */
uint64_t sdma_done_bytes(const struct sdma_queue *queue);
/* Sleeps until the ring is empty; -ETIME (reported) after about a minute without any progress. */
int sdma_drain(struct sdma_queue *queue);

/*
 * Sleeps until the dword at @fence, written by the GPU, is @value. The minute of patience is counted in naps,
 * not by a clock: the time that the process spends in an image does not count.
 */
int sdma_wait_fence(const struct sdma_queue *queue, const volatile uint32_t *fence, uint32_t value);

#endif
