// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of hsajob that calls the HSA runtime: agents, memory, copies, signals.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hsajob.h"
#include "pattern.h"
#include "report.h"

/* How long a chain of copies may take, in seconds. */
#define HSA_PATIENCE 120

static int failed(hsa_status_t status, const char *what)
{
	const char *text = NULL;

	if (hsa_status_string(status, &text) != HSA_STATUS_SUCCESS || !text)
		text = "unknown status";
	return report(EIO, "%s: %s (%#x)", what, text, (unsigned int)status);
}

int hsa_must(hsa_status_t status, const char *what)
{
	return status == HSA_STATUS_SUCCESS ? 0 : failed(status, what);
}

/* ---- what there is ---- */

/* Takes the first pool of the agent that programs may allocate from; fine-grained for the host, else not. */
static hsa_status_t pool_visit(hsa_amd_memory_pool_t pool, void *data)
{
	hsa_amd_memory_pool_t *found = data;
	hsa_amd_segment_t segment;
	bool allowed;
	hsa_status_t status;

	status = hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
	if (status != HSA_STATUS_SUCCESS || segment != HSA_AMD_SEGMENT_GLOBAL)
		return status;
	status = hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed);
	if (status != HSA_STATUS_SUCCESS || !allowed)
		return status;
	*found = pool;
	return HSA_STATUS_INFO_BREAK;
}

static int pool_find(hsa_agent_t agent, hsa_amd_memory_pool_t *ret_pool)
{
	hsa_status_t status = hsa_amd_agent_iterate_memory_pools(agent, pool_visit, ret_pool);

	if (status == HSA_STATUS_INFO_BREAK)
		return 0;
	return status == HSA_STATUS_SUCCESS ? report(ENOMEM, "an agent has no memory pool")
					    : failed(status, "looking for memory pools");
}

static hsa_status_t agent_visit(hsa_agent_t agent, void *data)
{
	struct hsa_job *job = data;
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);

	if (status != HSA_STATUS_SUCCESS)
		return status;
	if (type == HSA_DEVICE_TYPE_CPU && !job->host.handle)
		job->host = agent;
	if (type == HSA_DEVICE_TYPE_GPU && job->nr_gpus < HSA_MAX_GPUS)
		job->agents[job->nr_gpus++] = agent;
	return HSA_STATUS_SUCCESS;
}

/* ---- memory ---- */

int hsa_allocate(struct hsa_job *job, hsa_amd_memory_pool_t pool, uint64_t bytes, void **ret)
{
	int err = hsa_must(hsa_amd_memory_pool_allocate(pool, bytes, 0, ret), "allocating from a pool");

	return err ? err
		   : hsa_must(hsa_amd_agents_allow_access(job->nr_gpus, job->agents, NULL, *ret), "access for the GPUs");
}

static int lock_source(struct hsa_gpu *gpu)
{
	struct hsa_job *job = gpu->job;
	void *p = mmap(NULL, job->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return report(errno, "mmap of %" PRIu64 " bytes: %m", job->bytes);
	gpu->source = p;
	return hsa_must(hsa_amd_memory_lock(p, job->bytes, &gpu->agent, 1, &gpu->source_device), "locking memory");
}

/* ---- copies ---- */

int hsa_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, uint64_t bytes, hsa_signal_t after,
	     hsa_signal_t done)
{
	hsa_signal_store_relaxed(done, 1);
	return hsa_must(hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, bytes, after.handle ? 1 : 0,
						  after.handle ? &after : NULL, done),
			"hsa_amd_memory_async_copy");
}

int hsa_wait(const struct hsa_gpu *gpu, hsa_signal_t done, uint64_t timeout, const char *what)
{
	hsa_signal_value_t value =
		hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, timeout, HSA_WAIT_STATE_BLOCKED);

	if (value > 0)
		return report(ETIME, "%s: %s does not end", gpu->name, what);
	return value ? report(EIO, "%s: %s failed: its signal is %lld", gpu->name, what, (long long)value) : 0;
}

static int sink_check(struct hsa_gpu *gpu, const char *what, uint64_t seed)
{
	struct pattern_diff diff;

	if (pattern_check(gpu->sink, gpu->job->bytes, seed, 0, &diff))
		return 0;
	return report(EILSEQ, "%s: %s: byte %" PRIu64 " is %#04x, want %#04x", gpu->name, what, diff.offset, diff.got,
		      diff.want);
}

static uint64_t chain_seed(const struct hsa_gpu *gpu, uint64_t generation)
{
	return gpu->seed ^ generation << 20;
}

/* The steps of a chain wait for each other in the GPU, the first one for the gate. */
static int gpu_submit(struct hsa_gpu *gpu, uint64_t generation)
{
	struct hsa_job *job = gpu->job;
	struct hsa_gpu *peer = gpu->peer;
	int err;

	pattern_fill(gpu->source, job->bytes, chain_seed(gpu, generation), 0);
	err = hsa_copy(gpu->outbox, gpu->agent, gpu->source_device, job->host, job->bytes, job->gate, gpu->done[HSA_UP]);
	if (!err)
		err = hsa_copy(peer->inbox, peer->agent, gpu->outbox, gpu->agent, job->bytes, gpu->done[HSA_UP],
			   gpu->done[HSA_ACROSS]);
	if (!err)
		err = hsa_copy(gpu->sink, job->host, peer->inbox, peer->agent, job->bytes, gpu->done[HSA_ACROSS],
			   gpu->done[HSA_DOWN]);
	return err;
}

int hsa_job_submit(struct hsa_job *job, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = gpu_submit(&job->gpus[i], generation);
	return err;
}

int hsa_job_wait(struct hsa_job *job, uint64_t generation, uint64_t timeout)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		struct hsa_gpu *gpu = &job->gpus[i];

		err = hsa_wait(gpu, gpu->done[HSA_DOWN], timeout, "a copy");
		err = err ? err : sink_check(gpu, "the chain", chain_seed(gpu, generation));
		if (!err)
			memset(gpu->sink, 0, job->bytes);
	}
	return err;
}

int hsa_gpu_put(struct hsa_gpu *gpu, void *dst, uint64_t seed)
{
	struct hsa_job *job = gpu->job;
	const hsa_signal_t none = { 0 };
	int err;

	pattern_fill(gpu->source, job->bytes, seed, 0);
	err = hsa_copy(dst, gpu->agent, gpu->source_device, job->host, job->bytes, none, gpu->done[HSA_UP]);
	return err ? err : hsa_wait(gpu, gpu->done[HSA_UP], job->timeout, "a copy");
}

int hsa_gpu_get(struct hsa_gpu *gpu, const void *src, uint64_t seed, const char *what)
{
	struct hsa_job *job = gpu->job;
	const hsa_signal_t none = { 0 };
	int err;

	memset(gpu->sink, 0, job->bytes);
	err = hsa_copy(gpu->sink, job->host, src, gpu->agent, job->bytes, none, gpu->done[HSA_DOWN]);
	err = err ? err : hsa_wait(gpu, gpu->done[HSA_DOWN], job->timeout, "a copy");
	return err ? err : sink_check(gpu, what, seed);
}

int hsa_job_check(struct hsa_job *job, uint64_t *bytes)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		struct hsa_gpu *gpu = &job->gpus[i];

		err = hsa_gpu_get(gpu, gpu->kept, gpu->seed, "kept data");
		*bytes += err ? 0 : job->bytes;
	}
	return err;
}

/* ---- begin and end ---- */

static int gpu_open(struct hsa_gpu *gpu)
{
	struct hsa_job *job = gpu->job;
	int err = hsa_must(hsa_agent_get_info(gpu->agent, HSA_AGENT_INFO_NAME, gpu->name), "name of a GPU");

	err = err ? err : pool_find(gpu->agent, &gpu->vram);
	err = err ? err : hsa_allocate(job, gpu->vram, job->bytes, &gpu->kept);
	err = err ? err : hsa_allocate(job, gpu->vram, job->bytes, &gpu->outbox);
	err = err ? err : hsa_allocate(job, gpu->vram, job->bytes, &gpu->inbox);
	err = err ? err : hsa_allocate(job, job->memory, job->bytes, &gpu->sink);
	err = err ? err : lock_source(gpu);
	for (unsigned int i = 0; !err && i < HSA_STEPS; i++)
		err = hsa_must(hsa_signal_create(1, 0, NULL, &gpu->done[i]), "creating a signal");
	return err ? err : hsa_gpu_put(gpu, gpu->kept, gpu->seed);
}

int hsa_job_open(struct hsa_job *job, uint64_t bytes)
{
	uint64_t frequency;
	int err = hsa_must(hsa_init(), "hsa_init");

	job->bytes = bytes;
	err = err ? err : hsa_must(hsa_iterate_agents(agent_visit, job), "looking for agents");
	if (!err && (!job->nr_gpus || !job->host.handle))
		err = report(ENODEV, "the runtime knows no GPU, or no CPU");
	err = err ? err : hsa_must(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency), "its clock");
	err = err ? err : hsa_must(hsa_signal_create(0, 0, NULL, &job->gate), "creating a signal");
	err = err ? err : pool_find(job->host, &job->memory);
	if (err)
		return err;
	job->timeout = HSA_PATIENCE * frequency;
	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		struct hsa_gpu *gpu = &job->gpus[i];

		gpu->job = job;
		gpu->agent = job->agents[i];
		gpu->seed = (uint64_t)(i + 1) << 40;
		gpu->peer = &job->gpus[(i + 1) % job->nr_gpus];
		err = gpu_open(gpu);
	}
	return err;
}

static int gpu_close(struct hsa_gpu *gpu)
{
	void *const memory[] = { gpu->kept, gpu->outbox, gpu->inbox, gpu->sink };
	int err = hsa_must(hsa_amd_memory_unlock(gpu->source), "unlocking memory");

	for (unsigned int i = 0; !err && i < sizeof(memory) / sizeof(*memory); i++)
		err = hsa_must(hsa_amd_memory_pool_free(memory[i]), "freeing memory");
	for (unsigned int i = 0; !err && i < HSA_STEPS; i++)
		err = hsa_must(hsa_signal_destroy(gpu->done[i]), "destroying a signal");
	if (!err && munmap(gpu->source, gpu->job->bytes))
		err = report(errno, "munmap: %m");
	return err;
}

int hsa_job_close(struct hsa_job *job)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = gpu_close(&job->gpus[i]);
	err = err ? err : hsa_must(hsa_signal_destroy(job->gate), "destroying a signal");
	return err ? err : hsa_must(hsa_shut_down(), "hsa_shut_down");
}
