/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AQL queues, their packets, signals and the built-in kernels. The program says
 * once, in struct aql_gpu, on what GPU and through which files.
 */
#ifndef CONFORMANCE_AQL_TEST_H
#define CONFORMANCE_AQL_TEST_H

#include "../workloads/aql.h"
#include "kfd_test.h"

struct aql_gpu {
	int kfd, drm_fd;
	const struct kfd_gpu *gpu;
};

static struct aql_gpu on;

#define WORDS 5000u /* one array */
#define CHUNK 1024u /* words that a kernel does at a time */

struct aql_queue {
	struct buffer ring, pointers, eop, cwsr, memory;
	uint32_t queue_id;
	volatile uint64_t *doorbell;
	uint8_t *doorbell_page;
	uint64_t next; /* packet index */
};

/* ---- the queue ---- */

static inline struct aql_queue aql_unborn(void)
{
	struct aql_queue q = { 0 };

	q.ring = buffer_new(on.kfd, on.drm_fd, on.gpu->gpu_id, AQL_PACKETS * AQL_PACKET_BYTES, GTT_RW);
	q.pointers = buffer_new(on.kfd, on.drm_fd, on.gpu->gpu_id, PAGE, GTT_RW);
	q.eop = buffer_new(on.kfd, on.drm_fd, on.gpu->gpu_id, PAGE, VRAM_RW);
	q.cwsr = buffer_new(on.kfd, on.drm_fd, on.gpu->gpu_id, (on.gpu->save_area_bytes + PAGE - 1) & ~(PAGE - 1), GTT_RW);
	q.memory = buffer_new(on.kfd, on.drm_fd, on.gpu->gpu_id, 256 << 10, GTT_RW);
	aql_ring_init((void *)q.ring.va);
	return q;
}

static inline void aql_born(struct aql_queue *q)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = q->ring.va,
		.ring_size = AQL_PACKETS * AQL_PACKET_BYTES,
		.write_pointer_address = q->pointers.va + 64,
		.read_pointer_address = q->pointers.va,
		.gpu_id = on.gpu->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.queue_priority = 7,
		.eop_buffer_address = q->eop.va,
		.eop_buffer_size = PAGE,
		.ctx_save_restore_address = q->cwsr.va,
		.ctx_save_restore_size = on.gpu->cwsr_bytes,
		.ctl_stack_size = on.gpu->ctl_stack_bytes,
	};

	must(ioctl(on.kfd, AMDKFD_IOC_CREATE_QUEUE, &args), "CREATE_QUEUE");
	q->queue_id = args.queue_id;
	q->doorbell_page = must_map(0, DOORBELLS, RW, on.kfd, args.doorbell_offset & ~(DOORBELLS - 1));
	q->doorbell = (volatile uint64_t *)(q->doorbell_page + (args.doorbell_offset & (DOORBELLS - 1)));
}

static inline void packet_put(struct aql_queue *q, const void *packet)
{
	aql_put((void *)q->ring.va, (volatile uint64_t *)(q->pointers.va + 64), q->doorbell, q->next++, packet);
}

static inline uint64_t aql_read_index(const struct aql_queue *q)
{
	return *(volatile uint64_t *)q->pointers.va;
}

static inline bool signal_becomes(const struct aql_signal *s, int64_t value)
{
	uint64_t end = now_ms() + 5000;

	while (__atomic_load_n(&s->value, __ATOMIC_ACQUIRE) != value) {
		if (now_ms() > end)
			return false;
		usleep(500);
	}
	return true;
}

/* ---- kernels; q->memory: object at 0, arguments at 64, signal at 128, data from a page on ---- */

static inline uint64_t at(const struct aql_queue *q, uint64_t offset)
{
	return q->memory.va + offset;
}

static inline uint32_t *words(const struct aql_queue *q, unsigned int array)
{
	return (uint32_t *)at(q, PAGE + array * 5 * PAGE);
}

static inline struct aql_signal *signal_of(const struct aql_queue *q)
{
	return (struct aql_signal *)at(q, 128);
}

/* A sum, and the gate that lets GATHER go on. Where other tests have nothing. */
static inline volatile uint64_t *gathered(const struct aql_queue *q)
{
	return (uint64_t *)at(q, 768);
}

static inline volatile uint32_t *gather_gate(const struct aql_queue *q)
{
	return (uint32_t *)at(q, 776);
}

static inline void dispatch(struct aql_queue *q, uint32_t kernel, uint64_t a, uint64_t b, uint64_t c, uint32_t items)
{
	struct aql_dispatch packet = {
		.header = AQL_DISPATCH,
		.setup = 1,
		.workgroup = { 64, 1, 1 },
		.grid = { items, 1, 1 },
		.kernel_object = at(q, 0),
		.kernarg = at(q, 64),
		.completion = (uintptr_t)signal_of(q),
	};
	uint64_t *args = (uint64_t *)at(q, 64);

	*(struct aql_kernel *)at(q, 0) = (struct aql_kernel){ .magic = AQL_KERNEL_MAGIC, .kernel = kernel };
	args[0] = a;
	args[1] = b;
	args[2] = c;
	signal_of(q)->value = 1;
	packet_put(q, &packet);
}

/* Array 0 is summed up as far as one chunk; then the kernel is in the middle. */
static inline void gather_begin(struct aql_queue *q)
{
	uint64_t end = now_ms() + 5000;

	*gathered(q) = 0;
	*gather_gate(q) = 1;
	dispatch(q, AQL_KERNEL_GATHER, (uintptr_t)gathered(q), (uintptr_t)words(q, 0), (uintptr_t)gather_gate(q), WORDS);
	while (!*gathered(q))
		if (now_ms() > end)
			errx(1, "the kernel does not begin");
}

#endif
