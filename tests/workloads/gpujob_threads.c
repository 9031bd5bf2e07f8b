// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that use the GPU on their own: each has a queue, and a word that the GPU counts up and
 * that it compares with its own count.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gpujob_extra.h"
#include "report.h"

#define NR_THREADS 3

struct words {
	uint64_t adds;
	uint32_t fence;
};

struct worker {
	pthread_t thread;
	struct sdma_queue queue;
	struct kfd_bo bo;
	volatile uint64_t rounds; /* done */
	volatile uint64_t wrong;  /* what the GPU had counted when it should have been rounds + 1 */
};

static struct worker workers[NR_THREADS];
static volatile int stop;

static int work_round(struct worker *worker)
{
	volatile struct words *words = worker->bo.cpu;
	uint64_t round = worker->rounds + 1;
	int err = sdma_add(&worker->queue, worker->bo.va, 1);

	err = err ? err : sdma_fence(&worker->queue, worker->bo.va + offsetof(struct words, fence), (uint32_t)round);
	if (err)
		return err;
	sdma_kick(&worker->queue);
	err = sdma_wait_fence(&worker->queue, &words->fence, (uint32_t)round);
	if (!err && words->adds != round)
		worker->wrong = words->adds;
	worker->rounds = round;
	return err;
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	while (!stop && !worker->wrong && !work_round(worker))
		usleep(2000);
	return NULL;
}

static int worker_start(struct job_gpu *gpu, struct worker *worker)
{
	int err = sdma_create(gpu->kfd, gpu->gpu, 4 * KFD_PAGE_SIZE, &worker->queue);

	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &worker->bo);
	if (err)
		return err;
	memset(worker->bo.cpu, 0, KFD_PAGE_SIZE);
	err = pthread_create(&worker->thread, NULL, work, worker);
	return err ? report(err, "pthread_create: %s", strerror(err)) : 0;
}

static int threads_setup(struct job_gpu *gpu)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < NR_THREADS; i++)
		err = worker_start(gpu, &workers[i]);
	return err;
}

static int threads_check(struct job_gpu *gpu)
{
	for (unsigned int i = 0; i < NR_THREADS; i++) {
		uint64_t rounds = workers[i].rounds;

		for (unsigned int naps = 0; workers[i].rounds == rounds; naps++) {
			if (naps == 30000)
				return report(ETIME, "gpu %#x: thread %u stands still", gpu->gpu->gpu_id, i);
			usleep(1000);
		}
		if (workers[i].wrong)
			return report(EILSEQ, "gpu %#x: thread %u: the GPU counted %" PRIu64 ", not %" PRIu64,
				      gpu->gpu->gpu_id, i, workers[i].wrong, workers[i].rounds);
	}
	return 0;
}

static int threads_teardown(struct job_gpu *gpu)
{
	int err = 0;

	stop = 1;
	for (unsigned int i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned int i = 0; !err && i < NR_THREADS; i++) {
		err = sdma_destroy(&workers[i].queue);
		err = err ? err : kfd_bo_free(gpu->kfd, &workers[i].bo);
	}
	return err;
}

const struct job_extra job_extra_threads = { "threads", threads_setup, NULL, threads_check, threads_teardown };
