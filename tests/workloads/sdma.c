// SPDX-License-Identifier: GPL-2.0-only
/*
 * SDMA queues and packets (SDMA 4.0 and later: gfx9 and newer GPUs).
 *
 * A packet never crosses the end of the ring: the rest is padded with NOPs. Ring, read
 * pointer and write pointer are three buffers, each with exactly one GPU mapping, which
 * newer kernels check when the queue is created.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/kfd_ioctl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "report.h"
#include "sdma.h"

enum {
	SDMA_OP_NOP = 0,
	SDMA_OP_COPY = 1,
	SDMA_OP_INDIRECT = 4,
	SDMA_OP_FENCE = 5,
	SDMA_OP_TRAP = 6,
	SDMA_OP_POLL_REGMEM = 8,
	SDMA_OP_ATOMIC = 10,
	SDMA_OP_CONST_FILL = 11,
};

#define SDMA_FILL_DWORDS   (2u << 30)
#define SDMA_POLL_MEMORY   (1u << 31)
#define SDMA_POLL_EQUAL	   (3u << 28)
#define SDMA_POLL_FOR_EVER (0xfffu << 16 | 4u) /* retry count (all ones: no end) and interval */
#define SDMA_ATOMIC_ADD64  (47u << 25)

#define NAP_NS	      1000000
#define PATIENCE_NAPS 60000

static void nap(void)
{
	struct timespec t = { .tv_nsec = NAP_NS };

	nanosleep(&t, NULL); /* a signal just makes it shorter */
}

static int queue_create(struct sdma_queue *queue, uint64_t *ret_doorbell_offset)
{
	struct kfd_ioctl_create_queue_args create = {
		.ring_base_address = queue->ring.va,
		.ring_size = (uint32_t)queue->ring.size_bytes,
		.write_pointer_address = queue->wptr.va,
		.read_pointer_address = queue->rptr.va,
		.gpu_id = queue->gpu->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = KFD_MAX_QUEUE_PRIORITY / 2,
	};
	int err = kfd_ioctl(queue->kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &create);

	if (err)
		return report(-err, "gpu %#x: CREATE_QUEUE (SDMA): %s", queue->gpu->gpu_id, strerror(-err));
	queue->queue_id = create.queue_id;
	*ret_doorbell_offset = create.doorbell_offset;
	return 0;
}

int sdma_create(struct kfd *kfd, struct kfd_gpu *gpu, uint32_t ring_bytes, struct sdma_queue *queue)
{
	uint64_t offset = 0;
	int err;

	memset(queue, 0, sizeof(*queue));
	queue->kfd = kfd;
	queue->gpu = gpu;
	err = kfd_bo_alloc(kfd, gpu, KFD_MEMORY_GTT, ring_bytes, &queue->ring);
	err = err ? err : kfd_bo_alloc(kfd, gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &queue->rptr);
	err = err ? err : kfd_bo_alloc(kfd, gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &queue->wptr);
	if (err)
		return err;
	memset(queue->rptr.cpu, 0, KFD_PAGE_SIZE);
	memset(queue->wptr.cpu, 0, KFD_PAGE_SIZE);
	err = queue_create(queue, &offset);
	if (err)
		return err;
	err = kfd_doorbells_map(kfd, gpu, offset);
	if (err)
		return err;
	queue->doorbell = gpu->doorbell_page + offset % KFD_DOORBELL_BYTES / sizeof(uint64_t);
	return 0;
}

int sdma_destroy(struct sdma_queue *queue)
{
	struct kfd_ioctl_destroy_queue_args destroy = { .queue_id = queue->queue_id };
	int err;

	if (!queue->doorbell)
		return 0;
	err = kfd_ioctl(queue->kfd->fd, AMDKFD_IOC_DESTROY_QUEUE, &destroy);
	if (err)
		return report(-err, "gpu %#x: DESTROY_QUEUE %u: %s", queue->gpu->gpu_id, queue->queue_id,
			      strerror(-err));
	queue->doorbell = NULL;
	err = kfd_bo_free(queue->kfd, &queue->ring);
	err = err ? err : kfd_bo_free(queue->kfd, &queue->rptr);
	return err ? err : kfd_bo_free(queue->kfd, &queue->wptr);
}

uint64_t sdma_done_bytes(const struct sdma_queue *queue)
{
	return *(const volatile uint64_t *)queue->rptr.cpu;
}

/* Waits until no more than @left bytes are in the ring. The patience starts anew with every progress. */
static int ring_wait(struct sdma_queue *queue, uint64_t left)
{
	uint64_t done = sdma_done_bytes(queue);
	unsigned int naps = 0;

	while (queue->put - done > left) {
		uint64_t now;

		if (naps++ == PATIENCE_NAPS)
			return report(ETIME, "gpu %#x: queue %u stands still at %" PRIu64 " of %" PRIu64 " bytes",
				      queue->gpu->gpu_id, queue->queue_id, done, queue->put);
		nap();
		now = sdma_done_bytes(queue);
		if (now > queue->put)
			return report(EIO,
				      "gpu %#x: queue %u: read pointer %" PRIu64 " is beyond the %" PRIu64
				      " bytes written",
				      queue->gpu->gpu_id, queue->queue_id, now, queue->put);
		if (now != done)
			naps = 0;
		done = now;
	}
	return 0;
}

static void ring_put(struct sdma_queue *queue, const uint32_t *dw, unsigned int count)
{
	volatile uint32_t *ring = queue->ring.cpu;

	for (unsigned int i = 0; i < count; i++, queue->put += sizeof(*dw))
		ring[queue->put % queue->ring.size_bytes / sizeof(*dw)] = dw[i];
}

static int packet_put(struct sdma_queue *queue, const uint32_t *dw, unsigned int count)
{
	static const uint32_t nop = SDMA_OP_NOP;
	uint64_t size = queue->ring.size_bytes, bytes = count * sizeof(*dw);
	uint64_t to_end = size - queue->put % size;
	uint64_t need = bytes + (to_end < bytes ? to_end : 0);

	if (queue->ib) {
		memcpy(queue->ib + queue->ib_dwords, dw, bytes);
		queue->ib_dwords += count;
		return 0;
	}
	/* One dword stays free: a full ring must not look like an empty one to hardware. */
	if (queue->put + need + sizeof(*dw) - sdma_done_bytes(queue) > size) {
		int err;

		sdma_kick(queue);
		err = ring_wait(queue, size - need - sizeof(*dw));
		if (err)
			return err;
	}
	while (queue->put % size + bytes > size)
		ring_put(queue, &nop, 1);
	ring_put(queue, dw, count);
	return 0;
}

static uint32_t lo(uint64_t x)
{
	return (uint32_t)x;
}

static uint32_t hi(uint64_t x)
{
	return (uint32_t)(x >> 32);
}

int sdma_copy(struct sdma_queue *queue, uint64_t dst, uint64_t src, uint64_t bytes)
{
	while (bytes) {
		uint32_t n = bytes < SDMA_MAX_COPY_BYTES ? (uint32_t)bytes : SDMA_MAX_COPY_BYTES;
		uint32_t dw[] = { SDMA_OP_COPY, n - 1, 0, lo(src), hi(src), lo(dst), hi(dst) };
		int err = packet_put(queue, dw, 7);

		if (err)
			return err;
		dst += n;
		src += n;
		bytes -= n;
	}
	return 0;
}

int sdma_fill(struct sdma_queue *queue, uint64_t dst, uint32_t value, uint64_t bytes)
{
	while (bytes) {
		uint32_t n = bytes < SDMA_MAX_COPY_BYTES ? (uint32_t)bytes : SDMA_MAX_COPY_BYTES;
		uint32_t dw[] = { SDMA_OP_CONST_FILL | SDMA_FILL_DWORDS, lo(dst), hi(dst), value, n - 1 };
		int err = packet_put(queue, dw, 5);

		if (err)
			return err;
		dst += n;
		bytes -= n;
	}
	return 0;
}

int sdma_fence(struct sdma_queue *queue, uint64_t dst, uint32_t value)
{
	uint32_t dw[] = { SDMA_OP_FENCE, lo(dst), hi(dst), value };

	return packet_put(queue, dw, 4);
}

int sdma_add(struct sdma_queue *queue, uint64_t dst, uint64_t value)
{
	uint32_t dw[] = { SDMA_OP_ATOMIC | SDMA_ATOMIC_ADD64, lo(dst), hi(dst), lo(value), hi(value), 0, 0, 0 };

	return packet_put(queue, dw, 8);
}

int sdma_wait_memory(struct sdma_queue *queue, uint64_t src, uint32_t value)
{
	uint32_t dw[] = {
		SDMA_OP_POLL_REGMEM | SDMA_POLL_MEMORY | SDMA_POLL_EQUAL,
		lo(src),
		hi(src),
		value,
		0xffffffff,
		SDMA_POLL_FOR_EVER,
	};

	return packet_put(queue, dw, 6);
}

int sdma_trap(struct sdma_queue *queue, uint32_t context_id)
{
	uint32_t dw[] = { SDMA_OP_TRAP, context_id };

	return packet_put(queue, dw, 2);
}

void sdma_ib_begin(struct sdma_queue *queue, void *ib)
{
	queue->ib = ib;
	queue->ib_dwords = 0;
}

/* An IB has whole groups of eight dwords, and so has the ring up to the end of the packet that leads there. */
int sdma_ib_end(struct sdma_queue *queue)
{
	static const uint32_t nop = SDMA_OP_NOP;
	uint64_t va = (uint64_t)(uintptr_t)queue->ib;
	uint32_t dw[] = { SDMA_OP_INDIRECT, lo(va), hi(va), 0, 0, 0 };

	while (queue->ib_dwords % 8)
		queue->ib[queue->ib_dwords++] = nop;
	dw[3] = queue->ib_dwords;
	queue->ib = NULL;
	while (queue->put / sizeof(nop) % 8 != 2) {
		int err = packet_put(queue, &nop, 1);

		if (err)
			return err;
	}
	return packet_put(queue, dw, 6);
}

void sdma_kick(struct sdma_queue *queue)
{
	*(volatile uint64_t *)queue->wptr.cpu = queue->put;
	atomic_thread_fence(memory_order_seq_cst);
	*queue->doorbell = queue->put;
}

int sdma_drain(struct sdma_queue *queue)
{
	return ring_wait(queue, 0);
}

int sdma_copy_now(struct sdma_queue *queue, uint64_t dst, uint64_t src, uint64_t bytes)
{
	int err = sdma_copy(queue, dst, src, bytes);

	if (err)
		return err;
	sdma_kick(queue);
	return sdma_drain(queue);
}

int sdma_wait_fence(const struct sdma_queue *queue, const volatile uint32_t *fence, uint32_t value)
{
	for (unsigned int naps = 0; *fence != value; naps++) {
		if (naps == PATIENCE_NAPS)
			return report(ETIME,
				      "gpu %#x: queue %u: fence is %u, want %u (%" PRIu64 " of %" PRIu64 " bytes done)",
				      queue->gpu->gpu_id, queue->queue_id, *fence, value, sdma_done_bytes(queue),
				      queue->put);
		nap();
	}
	atomic_thread_fence(memory_order_acquire);
	return 0;
}
