// SPDX-License-Identifier: GPL-2.0-only
/*
 * What gpujob does on one GPU: its buffers, its two queues, one generation of data.
 *
 * The chain queue carries new data through every kind of memory and logs each hop. The
 * busy queue always holds one batch behind a gate that only the CPU opens, so that a
 * checkpoint at any moment finds packets that were submitted and not yet executed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpujob.h"
#include "pattern.h"
#include "report.h"

#define RING_BYTES	  (64u << 10)
#define WINDOW_BYTES	  (1u << 20)
#define EVENT_PATIENCE_MS 60000u
#define BUSY_POISON	  0xdeadbeefu
#define BUSY_IB_BYTES	  (32u << 10) /* 256 copies and additions of 60 bytes, and the rest */

/* Whether all VRAM is visible to the CPU; without that the kernel gives no public VRAM. */
static bool has_large_bar(const struct kfd_gpu *gpu)
{
	return gpu->public_vram_bytes && gpu->public_vram_bytes == gpu->vram_bytes;
}

static int chain_setup(struct job_gpu *job)
{
	const enum kfd_memory vram_b = has_large_bar(job->gpu) ? KFD_MEMORY_VRAM_PUBLIC : KFD_MEMORY_VRAM;
	const enum kfd_memory kinds[JOB_CHAIN_LENGTH] = {
		[JOB_SRC] = KFD_MEMORY_USERPTR, [JOB_GTT] = KFD_MEMORY_GTT,    [JOB_VRAM_A] = KFD_MEMORY_VRAM,
		[JOB_VRAM_B] = vram_b,		[JOB_INBOX] = KFD_MEMORY_VRAM, [JOB_DST] = KFD_MEMORY_USERPTR,
	};

	for (unsigned int i = 0; i < JOB_CHAIN_LENGTH; i++) {
		int err = kfd_bo_alloc(job->kfd, job->gpu, kinds[i], job->options->chain_bytes + job_chain_offset(i),
				       &job->chain[i]);

		if (err)
			return err;
	}
	return 0;
}

static int static_fill(struct job_gpu *job, struct job_buffer *buffer)
{
	if (buffer->bo.cpu) {
		pattern_fill(buffer->bo.cpu, buffer->bo.size_bytes, buffer->seed, 0);
		return 0;
	}
	for (uint64_t at = 0; at < buffer->bo.size_bytes; at += WINDOW_BYTES) {
		uint64_t left = buffer->bo.size_bytes - at;
		uint64_t n = left < WINDOW_BYTES ? left : WINDOW_BYTES;
		int err;

		pattern_fill(job->window.cpu, n, buffer->seed, at);
		err = job_gpu_copy(job, buffer->bo.va + at, job->window.va, n);
		if (err)
			return err;
	}
	return 0;
}

/* @total bytes of a kind in several buffers of an odd number of pages each. VRAM is public and hidden by turns. */
static int statics_add(struct job_gpu *job, enum kfd_memory kind, uint64_t total)
{
	uint64_t pages = total / job->options->buffers / KFD_PAGE_SIZE | 1;

	if (!total)
		return 0;
	for (unsigned int i = 0; i < job->options->buffers; i++) {
		struct job_buffer *buffer = &job->statics[job->nr_statics];
		bool public = kind == KFD_MEMORY_VRAM && i % 2 && has_large_bar(job->gpu);
		int err = kfd_bo_alloc(job->kfd, job->gpu, public ? KFD_MEMORY_VRAM_PUBLIC : kind,
				       pages * KFD_PAGE_SIZE, &buffer->bo);

		if (err)
			return err;
		buffer->seed = job->seed + 1 + job->nr_statics++;
		err = static_fill(job, buffer);
		if (err)
			return err;
	}
	return 0;
}

static int busy_setup(struct job_gpu *job)
{
	uint64_t bytes = (uint64_t)job->options->busy_units * JOB_BUSY_UNIT_BYTES;
	int err;

	if (!bytes)
		return 0;
	err = sdma_create(job->kfd, job->gpu, RING_BYTES, &job->busy_queue);
	err = err ? err : kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_GTT, bytes, &job->busy_src);
	err = err ? err : kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_VRAM, bytes, &job->busy_dst);
	if (!err && job->options->ib)
		err = kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_GTT, 2 * BUSY_IB_BYTES, &job->busy_ib);
	if (err)
		return err;
	pattern_fill(job->busy_src.cpu, bytes, job->seed, 0);
	return 0;
}

static int events_setup(struct job_gpu *job)
{
	int err;

	if (!job->options->events)
		return 0;
	err = kfd_event_create(job->kfd, job->gpu, &job->event);
	return err ? err : kfd_event_create(job->kfd, job->gpu, &job->never);
}

int job_gpu_setup(struct job_gpu *job)
{
	unsigned int nr_statics = 3 * job->options->buffers;
	int err;

	job->statics = calloc(nr_statics, sizeof(*job->statics));
	if (!job->statics)
		return report(ENOMEM, "no memory for %u buffers", nr_statics);
	err = kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_GTT, sizeof(*job->log), &job->log_bo);
	err = err ? err : kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_USERPTR, WINDOW_BYTES, &job->window);
	if (err)
		return err;
	job->log = job->log_bo.cpu;
	memset(job->log_bo.cpu, 0, job->log_bo.size_bytes);
	err = sdma_create(job->kfd, job->gpu, RING_BYTES, &job->chain_queue);
	err = err ? err : events_setup(job);
	err = err ? err : chain_setup(job);
	err = err ? err : statics_add(job, KFD_MEMORY_VRAM, job->options->vram_bytes);
	err = err ? err : statics_add(job, KFD_MEMORY_GTT, job->options->gtt_bytes);
	err = err ? err : statics_add(job, KFD_MEMORY_USERPTR, job->options->userptr_bytes);
	return err ? err : busy_setup(job);
}

int job_gpu_connect(struct job_gpu *job, struct job_gpu *peer)
{
	if (peer == job)
		return 0;
	job->peer = peer;
	return kfd_bo_share(job->kfd, &peer->chain[JOB_INBOX], job->gpu);
}

uint64_t job_gpu_log_va(const struct job_gpu *job, const volatile void *field)
{
	return job->log_bo.va + (uint64_t)((const volatile char *)field - (const volatile char *)job->log);
}

static int chain_wait(struct job_gpu *job)
{
	while (job->options->events && job->log->chain_fence != job->fence) {
		int err = kfd_event_wait(job->kfd, &job->event, EVENT_PATIENCE_MS);

		if (err == -ETIME)
			return report(ETIME, "gpu %#x: event %u did not come for fence %u (is %u)", job->gpu->gpu_id,
				      job->event.id, job->fence, job->log->chain_fence);
		if (err)
			return err;
	}
	return sdma_wait_fence(&job->chain_queue, &job->log->chain_fence, job->fence);
}

/* Fence (and event) behind everything submitted so far, then sleep until it is there. */
static int chain_sync(struct job_gpu *job)
{
	struct sdma_queue *queue = &job->chain_queue;
	int err = sdma_fence(queue, job_gpu_log_va(job, &job->log->chain_fence), ++job->fence);

	if (!err && job->options->events) {
		err = sdma_fence(queue, job->event.slot_va, job->event.id);
		err = err ? err : sdma_trap(queue, job->event.id);
	}
	if (err)
		return err;
	sdma_kick(queue);
	return chain_wait(job);
}

int job_gpu_copy(struct job_gpu *job, uint64_t dst, uint64_t src, uint64_t bytes)
{
	int err = sdma_copy(&job->chain_queue, dst, src, bytes);

	return err ? err : chain_sync(job);
}

/* One hop: the copy, a line in the log, one more on the counter. */
static int chain_hop(struct job_gpu *job, unsigned int to)
{
	struct sdma_queue *queue = &job->chain_queue;
	uint64_t hop = ++job->chain_adds;
	int err = sdma_copy(queue, job_chain_va(job, to), job_chain_va(job, to - 1), job->options->chain_bytes);

	err = err ? err : sdma_fence(queue, job_gpu_log_va(job, &job->log->slots[hop % JOB_LOG_SLOTS]), (uint32_t)hop);
	return err ? err : sdma_add(queue, job_gpu_log_va(job, &job->log->chain_adds), 1);
}

static int chain_log_check(const struct job_gpu *job)
{
	for (uint64_t hop = job->chain_adds - (JOB_CHAIN_LENGTH - 1) + 1; hop <= job->chain_adds; hop++) {
		uint32_t got = job->log->slots[hop % JOB_LOG_SLOTS];

		if (got != (uint32_t)hop)
			return report(EILSEQ, "gpu %#x: log of hop %" PRIu64 " holds %u", job->gpu->gpu_id, hop, got);
	}
	if (job->log->chain_adds != job->chain_adds)
		return report(EILSEQ, "gpu %#x: %" PRIu64 " increments submitted, %" PRIu64 " executed",
			      job->gpu->gpu_id, job->chain_adds, job->log->chain_adds);
	return 0;
}

int job_gpu_round(struct job_gpu *job, uint64_t generation)
{
	uint64_t seed = job_chain_seed(job, generation), bytes = job->options->chain_bytes;
	uint8_t *src = (uint8_t *)job->chain[JOB_SRC].cpu + job_chain_offset(JOB_SRC);
	const uint8_t *dst = (uint8_t *)job->chain[JOB_DST].cpu + job_chain_offset(JOB_DST);
	struct pattern_diff diff;
	int err;

	pattern_fill(src, bytes, seed, 0);
	for (unsigned int to = JOB_SRC + 1; to < JOB_CHAIN_LENGTH; to++) {
		err = chain_hop(job, to);
		if (err)
			return err;
	}
	err = chain_sync(job);
	if (err)
		return err;
	job->generation = generation;
	if (!pattern_check(dst, bytes, seed, 0, &diff))
		return report(EILSEQ,
			      "gpu %#x: generation %" PRIu64 ": byte %" PRIu64 " of %" PRIu64 " is %#04x, want %#04x",
			      job->gpu->gpu_id, generation, diff.offset, bytes, diff.got, diff.want);
	return chain_log_check(job);
}

/* Behind the gate: spoil the destination, then copy it anew in pieces. */
static int batch_put(struct job_gpu *job, uint32_t batch)
{
	struct sdma_queue *queue = &job->busy_queue;
	int err = sdma_wait_memory(queue, job_gpu_log_va(job, &job->log->gate), batch);

	err = err ? err : sdma_fill(queue, job->busy_dst.va, BUSY_POISON, job->busy_dst.size_bytes);
	for (unsigned int i = 0; !err && i < job->options->busy_units; i++) {
		uint64_t at = (uint64_t)i * JOB_BUSY_UNIT_BYTES;

		err = sdma_copy(queue, job->busy_dst.va + at, job->busy_src.va + at, JOB_BUSY_UNIT_BYTES);
		err = err ? err : sdma_add(queue, job_gpu_log_va(job, &job->log->busy_adds), 1);
	}
	return err ? err : sdma_fence(queue, job_gpu_log_va(job, &job->log->busy_fence), batch);
}

/* There are two indirect buffers: that of the batch before the last one is free again. */
static int batch_put_ib(struct job_gpu *job, uint32_t batch)
{
	int err;

	sdma_ib_begin(&job->busy_queue, (char *)job->busy_ib.cpu + batch % 2 * BUSY_IB_BYTES);
	err = sdma_add(&job->busy_queue, job_gpu_log_va(job, &job->log->busy_begun), 1);
	err = err ? err : batch_put(job, batch);
	return err ? err : sdma_ib_end(&job->busy_queue);
}

static int batch_submit(struct job_gpu *job)
{
	int err = (job->options->ib ? batch_put_ib : batch_put)(job, ++job->batch);

	if (!err)
		sdma_kick(&job->busy_queue);
	return err;
}

int job_gpu_busy_wait(struct job_gpu *job)
{
	uint32_t batch = job->log->gate;
	uint64_t want = (uint64_t)batch * job->options->busy_units;
	int err;

	if (!job->options->busy_units || !batch)
		return 0;
	err = sdma_wait_fence(&job->busy_queue, &job->log->busy_fence, batch);
	if (err)
		return err;
	if (job->log->busy_adds != want)
		return report(EILSEQ, "gpu %#x: %u batches of %u copies let go, %" PRIu64 " copies executed",
			      job->gpu->gpu_id, batch, job->options->busy_units, job->log->busy_adds);
	/* The next batch may be at its gate. */
	if (job->options->ib && job->log->busy_begun - batch > 1)
		return report(EILSEQ, "gpu %#x: %u batches let go, %" PRIu64 " were begun", job->gpu->gpu_id, batch,
			      job->log->busy_begun);
	return 0;
}

int job_gpu_busy_step(struct job_gpu *job)
{
	int err;

	if (!job->options->busy_units)
		return 0;
	err = job_gpu_busy_wait(job);
	if (!err && !job->batch)
		err = batch_submit(job);
	err = err ? err : batch_submit(job);
	if (err)
		return err;
	job->log->gate = job->batch - 1;
	return 0;
}

static int buffers_free(struct job_gpu *job)
{
	struct kfd_bo *const singles[] = {
		&job->window, &job->busy_src, &job->busy_dst, &job->busy_ib, &job->log_bo,
	};
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_statics; i++)
		err = kfd_bo_free(job->kfd, &job->statics[i].bo);
	for (unsigned int i = 0; !err && i < JOB_CHAIN_LENGTH; i++)
		err = kfd_bo_free(job->kfd, &job->chain[i]);
	for (unsigned int i = 0; !err && i < sizeof(singles) / sizeof(*singles); i++)
		err = kfd_bo_free(job->kfd, singles[i]);
	free(job->statics);
	job->statics = NULL;
	job->nr_statics = 0;
	return err;
}

int job_gpu_teardown(struct job_gpu *job)
{
	int err = 0;

	if (job->busy_queue.doorbell) {
		/* Each batch waits for its own number: none may be skipped. */
		err = job_gpu_busy_wait(job);
		job->log->gate = job->batch;
		err = err ? err : job_gpu_busy_wait(job);
		err = err ? err : sdma_drain(&job->busy_queue);
	}
	err = err ? err : sdma_drain(&job->chain_queue);
	err = err ? err : sdma_destroy(&job->busy_queue);
	err = err ? err : sdma_destroy(&job->chain_queue);
	err = err ? err : kfd_event_destroy(job->kfd, &job->event);
	err = err ? err : kfd_event_destroy(job->kfd, &job->never);
	return err ? err : buffers_free(job);
}
