// SPDX-License-Identifier: GPL-2.0-only
/*
 * A token that the GPUs of all processes of the job pass round in memory that they share, without the CPU: a queue
 * waits until the token has the value that is its process' turn, counts that in memory of its own, and writes the
 * next value. A checkpoint that took the processes at different times shows: the token is lost, or two have it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "gpujob_extra.h"
#include "report.h"

#define TURNS_AHEAD   64u
#define PATIENCE_STEPS 6000u

static volatile uint32_t *token; /* shared by all processes */
static unsigned int nr_processes;

static struct sdma_queue queue;
static struct kfd_bo token_bo, count_bo; /* @count_bo: how often it was our turn */
static uint32_t turns;			 /* submitted */
static uint32_t last_value;
static unsigned int still; /* steps since the token moved */

int job_token_share(unsigned int last)
{
	void *p = mmap(NULL, KFD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return report(errno, "mmap of shared memory: %m");
	token = p;
	nr_processes = last + 1;
	return 0;
}

uint32_t job_token_value(void)
{
	return token ? *token : 0;
}

static uint64_t counted(void)
{
	return *(volatile uint64_t *)count_bo.cpu;
}

/* How many turns of a process are over when the token has a value. */
static uint64_t turns_at(const struct job_gpu *gpu, uint32_t value)
{
	return (value + nr_processes - 1 - gpu->process) / nr_processes;
}

static int turn_submit(const struct job_gpu *gpu)
{
	uint32_t mine = turns++ * nr_processes + gpu->process;
	int err = sdma_wait_memory(&queue, token_bo.va, mine);

	err = err ? err : sdma_add(&queue, count_bo.va, 1);
	return err ? err : sdma_fence(&queue, token_bo.va, mine + 1);
}

static int token_step(struct job_gpu *gpu)
{
	int err = 0;

	while (!err && turns < counted() + TURNS_AHEAD)
		err = turn_submit(gpu);
	if (err)
		return err;
	sdma_kick(&queue);
	still = *token == last_value ? still + 1 : 0;
	last_value = *token;
	if (still == PATIENCE_STEPS)
		return report(ETIME, "gpu %#x: the token stays at %" PRIu32 "; this process had it %" PRIu64 " times",
			      gpu->gpu->gpu_id, last_value, counted());
	return 0;
}

static int token_setup(struct job_gpu *gpu)
{
	int err = sdma_create(gpu->kfd, gpu->gpu, 16 * KFD_PAGE_SIZE, &queue);

	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &count_bo);
	err = err ? err : kfd_bo_adopt(gpu->kfd, gpu->gpu, (void *)token, KFD_PAGE_SIZE, &token_bo);
	if (err)
		return err;
	memset(count_bo.cpu, 0, KFD_PAGE_SIZE);
	return 0;
}

/* The GPU counts before it passes the token on; it may do so while we look. */
static int token_check(struct job_gpu *gpu)
{
	uint64_t least = turns_at(gpu, *token), count;

	atomic_thread_fence(memory_order_seq_cst);
	count = counted();
	atomic_thread_fence(memory_order_seq_cst);
	if (count < least || count > turns_at(gpu, *token) + 1)
		return report(EILSEQ, "gpu %#x: the token was here %" PRIu64 " times, but its value %" PRIu32 " says %" PRIu64,
			      gpu->gpu->gpu_id, count, *token, least);
	return 0;
}

/* Turns that are left wait for processes that may be gone. */
static int token_teardown(struct job_gpu *gpu)
{
	int err = sdma_destroy(&queue);

	err = err ? err : kfd_bo_free(gpu->kfd, &count_bo);
	return err;
}

const struct job_extra job_extra_token = { "token", token_setup, token_step, token_check, token_teardown };
