// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks every byte that gpujob owns on a GPU.
 *
 * Whatever the GPU can reach is copied by the GPU into the window and compared there;
 * whatever the CPU can reach is compared in place, too, so that a mapping that shows
 * other memory than the GPU's is found. Nothing may be in flight in the chain.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "gpujob.h"
#include "pattern.h"
#include "report.h"

static int wrong(const struct job_gpu *job, const char *what, const char *who, const struct pattern_diff *diff)
{
	return report(EILSEQ, "gpu %#x: %s seen by the %s: byte %" PRIu64 " is %#04x, want %#04x", job->gpu->gpu_id,
		      what, who, diff->offset, diff->got, diff->want);
}

/* The GPU's view of [va, va + bytes), which has to be pattern @seed from its start. */
static int gpu_view(struct job_gpu *job, const char *what, uint64_t va, uint64_t bytes, uint64_t seed)
{
	uint64_t step = job->window.size_bytes;

	for (uint64_t at = 0; at < bytes; at += step) {
		uint64_t n = bytes - at < step ? bytes - at : step;
		struct pattern_diff diff;
		int err = job_gpu_copy(job, job->window.va, va + at, n);

		if (err)
			return err;
		if (!pattern_check(job->window.cpu, n, seed, at, &diff))
			return wrong(job, what, "GPU", &diff);
	}
	return 0;
}

static int cpu_view(struct job_gpu *job, const char *what, const void *p, uint64_t bytes, uint64_t seed)
{
	struct pattern_diff diff;

	return pattern_check(p, bytes, seed, 0, &diff) ? 0 : wrong(job, what, "CPU", &diff);
}

static int statics_check(struct job_gpu *job, uint64_t *bytes)
{
	for (unsigned int i = 0; i < job->nr_statics; i++) {
		const struct job_buffer *buffer = &job->statics[i];
		const char *what = kfd_memory_name(buffer->bo.kind);
		int err = gpu_view(job, what, buffer->bo.va, buffer->bo.size_bytes, buffer->seed);

		if (!err && buffer->bo.cpu)
			err = cpu_view(job, what, buffer->bo.cpu, buffer->bo.size_bytes, buffer->seed);
		if (err)
			return err;
		*bytes += buffer->bo.size_bytes;
	}
	return 0;
}

/* All stations of the chain hold the last generation. The peer's inbox is read by this GPU, from across. */
static int chain_check(struct job_gpu *job, uint64_t *bytes)
{
	uint64_t seed = job_chain_seed(job, job->generation);

	for (unsigned int i = 0; i < JOB_CHAIN_LENGTH; i++) {
		int err = gpu_view(job, "chain data", job_chain_va(job, i), job->options->chain_bytes, seed);
		const struct kfd_bo *bo = &job->chain[i];

		if (!err && bo->cpu)
			err = cpu_view(job, "chain data", (const char *)bo->cpu + job_chain_offset(i),
				       job->options->chain_bytes, seed);
		if (err)
			return err;
		*bytes += job->options->chain_bytes;
	}
	return 0;
}

static int busy_check(struct job_gpu *job, uint64_t *bytes)
{
	int err;

	if (!job->options->busy_units)
		return 0;
	err = job_gpu_busy_wait(job);
	err = err ? err : gpu_view(job, "busy queue's target", job->busy_dst.va, job->busy_dst.size_bytes, job->seed);
	*bytes += job->busy_dst.size_bytes;
	return err;
}

/* Memory that is allocated now, perhaps long after a restore, must work as well. */
static int fresh_check(struct job_gpu *job, uint64_t *bytes)
{
	struct kfd_bo fresh;
	uint64_t seed = job->seed ^ UINT64_MAX;
	int err = kfd_bo_alloc(job->kfd, job->gpu, KFD_MEMORY_VRAM, 3 * KFD_PAGE_SIZE, &fresh);

	if (err)
		return err;
	pattern_fill(job->window.cpu, fresh.size_bytes, seed, 0);
	err = job_gpu_copy(job, fresh.va, job->window.va, fresh.size_bytes);
	memset(job->window.cpu, 0, fresh.size_bytes);
	err = err ? err : gpu_view(job, "fresh VRAM", fresh.va, fresh.size_bytes, seed);
	*bytes += fresh.size_bytes;
	return err ? err : kfd_bo_free(job->kfd, &fresh);
}

int job_gpu_check(struct job_gpu *job, uint64_t *bytes)
{
	int err = statics_check(job, bytes);

	err = err ? err : chain_check(job, bytes);
	err = err ? err : busy_check(job, bytes);
	return err ? err : fresh_check(job, bytes);
}

static int static_spoil(struct job_gpu *job, enum kfd_memory kind)
{
	for (unsigned int i = 0; i < job->nr_statics; i++) {
		const struct kfd_bo *bo = &job->statics[i].bo;
		uint8_t *byte = job->window.cpu;
		int err;

		if (bo->kind != kind)
			continue;
		err = job_gpu_copy(job, job->window.va, bo->va + bo->size_bytes - 1, 1);
		*byte ^= 1;
		return err ? err : job_gpu_copy(job, bo->va + bo->size_bytes - 1, job->window.va, 1);
	}
	return report(ENOENT, "--spoil: no static data in %s", kfd_memory_name(kind));
}

int job_gpu_spoil(struct job_gpu *job, enum job_spoil what)
{
	switch (what) {
	case JOB_SPOIL_VRAM:
		return static_spoil(job, KFD_MEMORY_VRAM);
	case JOB_SPOIL_GTT:
		return static_spoil(job, KFD_MEMORY_GTT);
	case JOB_SPOIL_USERPTR:
		return static_spoil(job, KFD_MEMORY_USERPTR);
	case JOB_SPOIL_PACKET:
		return sdma_add(&job->chain_queue, job_gpu_log_va(job, &job->log->chain_adds), 1);
	case JOB_SPOIL_NOTHING:
		break;
	}
	return report(EINVAL, "SIGUSR2 came, but there is no --spoil");
}
