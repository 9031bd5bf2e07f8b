// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob's kernels: loaded by the runtime, one in each process, in the memory of the other one, which it opens by IPC.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include "gpujob_busy.h"
#include "hsajob.h"
#include "report.h"

/* As busy.cl has them; the gate lies behind, since all of it is the host's memory. */
struct hsa_code_arguments {
	uint32_t *words;
	double *sums;
	uint32_t *done, *rounds;
	const uint32_t *gate;
	uint32_t least;
	uint8_t hidden[256]; /* of the compiler */
	uint32_t open;
};

static int copy(struct hsa_code *code, void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent)
{
	const hsa_signal_t none = { 0 };
	int err = hsa_copy(to, to_agent, from, from_agent, sizeof(*code->host), none, code->copied);

	return err ? err : hsa_wait(code->gpu, code->copied, code->share->job->timeout, "a copy of what a kernel computes");
}

/* ---- memory of both processes ---- */

static hsa_amd_ipc_memory_t *handle_of(const struct hsa_code *code, unsigned int process)
{
	_Static_assert(2 * sizeof(hsa_amd_ipc_memory_t) <= sizeof(code->share->pair->control->token), "two handles fit");
	return (hsa_amd_ipc_memory_t *)code->share->pair->control->token + process;
}

/* Whole pages, as IPC wants them. */
static size_t memory_bytes(void)
{
	return (sizeof(struct busy) + 4095) & ~(size_t)4095;
}

static int exchange(struct hsa_code *code)
{
	struct pair *pair = code->share->pair;
	struct hsa_job *job = code->share->job;
	int err = pair_meet(pair); /* nobody needs the earlier handle any more */

	err = err ? err : hsa_must(hsa_amd_ipc_memory_create(code->own, memory_bytes(), handle_of(code, pair->number)),
			       "hsa_amd_ipc_memory_create");
	err = err ? err : pair_meet(pair);
	if (err)
		return err;
	return hsa_must(hsa_amd_ipc_memory_attach(handle_of(code, !pair->number), memory_bytes(), job->nr_gpus, job->agents,
						  (void **)&code->others), "hsa_amd_ipc_memory_attach");
}

/* ---- generations ---- */

static int queue_open(struct hsa_code *code)
{
	return hsa_must(hsa_queue_create(code->gpu->agent, HSA_PACKETS, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX,
					 &code->queue), "hsa_queue_create");
}

/* A new queue has no private memory yet: it asks by a signal, and the runtime, which allocates it then, is stopped before that. */
static int put_and_stop(struct hsa_code *code)
{
	int err = hsa_must(hsa_queue_destroy(code->queue), "hsa_queue_destroy");
	const amd_signal_t *asks;

	err = err ? err : queue_open(code);
	if (err)
		return err;
	asks = (const void *)(uintptr_t)((const amd_queue_t *)code->queue)->queue_inactive_signal.handle;
	fprintf(stderr, "asks: %d %p\n", getpid(), (const void *)&asks->value);
	hsa_kernel_put(&code->kernel, code->queue, BUSY_ITEMS, code->arguments, code->done);
	raise(SIGSTOP);
	return 0;
}

/* Its own memory is ready for the other process before that one's kernel begins. */
static int start(struct hsa_code *code, uint64_t generation)
{
	struct busy *others = code->others;
	int err;

	busy_start(code->host, generation);
	err = copy(code, code->own, code->gpu->agent, code->host, code->share->job->host);
	err = err ? err : pair_meet(code->share->pair);
	if (err)
		return err;
	*code->arguments = (struct hsa_code_arguments){
		.words = others->words,
		.sums = others->sums,
		.done = &others->done,
		.rounds = others->rounds,
		.gate = &code->arguments->open,
		.least = BUSY_LEAST,
	};
	hsa_signal_store_relaxed(code->done, 1);
	if (code->stop_at && generation == code->stop_at)
		return put_and_stop(code);
	hsa_kernel_put(&code->kernel, code->queue, BUSY_ITEMS, code->arguments, code->done);
	return 0;
}

static int end(struct hsa_code *code, uint64_t generation)
{
	int err;

	__atomic_store_n(&code->arguments->open, 1, __ATOMIC_RELEASE);
	err = hsa_wait(code->gpu, code->done, code->share->job->timeout, "a kernel");
	err = err ? err : pair_meet(code->share->pair);
	memset(code->host, 0, sizeof(*code->host));
	err = err ? err : copy(code, code->host, code->share->job->host, code->own, code->gpu->agent);
	return err ? err : busy_check(code->host, generation, code->share->pair->number);
}

int hsa_code_open(struct hsa_code *code, struct hsa_share *share, uint64_t generation)
{
	struct hsa_job *job = share->job;
	int err;

	code->share = share;
	code->gpu = &job->gpus[share->pair->number % job->nr_gpus];
	err = hsa_allocate(job, code->gpu->vram, memory_bytes(), (void **)&code->own);
	err = err ? err : hsa_allocate(job, job->memory, memory_bytes(), (void **)&code->host);
	err = err ? err : hsa_allocate(job, job->memory, sizeof(*code->arguments), (void **)&code->arguments);
	err = err ? err : hsa_must(hsa_signal_create(1, 0, NULL, &code->done), "creating a signal");
	err = err ? err : hsa_must(hsa_signal_create(1, 0, NULL, &code->copied), "creating a signal");
	err = err ? err : queue_open(code);
	err = err ? err : hsa_kernel_load(&code->kernel, code->gpu, code->path, "busy.kd");
	err = err ? err : exchange(code);
	return err ? err : start(code, generation);
}

int hsa_code_round(struct hsa_code *code, uint64_t generation)
{
	int err = end(code, generation);

	return err ? err : start(code, generation + 1);
}

int hsa_code_close(struct hsa_code *code, uint64_t generation)
{
	int err = end(code, generation);

	err = err ? err : hsa_must(hsa_amd_ipc_memory_detach(code->others), "hsa_amd_ipc_memory_detach");
	err = err ? err : pair_meet(code->share->pair);
	err = err ? err : hsa_must(hsa_queue_destroy(code->queue), "hsa_queue_destroy");
	err = err ? err : hsa_must(hsa_executable_destroy(code->kernel.executable), "hsa_executable_destroy");
	err = err ? err : hsa_must(hsa_signal_destroy(code->done), "destroying a signal");
	err = err ? err : hsa_must(hsa_signal_destroy(code->copied), "destroying a signal");
	err = err ? err : hsa_must(hsa_amd_memory_pool_free(code->own), "freeing memory");
	err = err ? err : hsa_must(hsa_amd_memory_pool_free(code->host), "freeing memory");
	return err ? err : hsa_must(hsa_amd_memory_pool_free(code->arguments), "freeing memory");
}
