// SPDX-License-Identifier: GPL-2.0-only
/* A thread that reads VRAM by the CPU all the time: it dies at once when it runs while that memory is not there. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gpujob_extra.h"
#include "report.h"

#define NR_WORDS (16 * KFD_PAGE_SIZE / sizeof(uint64_t))

static struct kfd_bo bo;
static pthread_t thread;
static volatile uint64_t rounds, wrong;
static volatile int stop;

static uint64_t word(uint64_t i)
{
	return i * 0x9e3779b97f4a7c15u;
}

static void *read_all(void *arg)
{
	volatile uint64_t *words = bo.cpu;

	(void)arg;
	while (!stop) {
		for (uint64_t i = 0; i < NR_WORDS; i += 64)
			wrong += words[i] != word(i);
		rounds++;
		usleep(200);
	}
	return NULL;
}

static int reads_setup(struct job_gpu *gpu)
{
	int err = kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_VRAM_PUBLIC, NR_WORDS * sizeof(uint64_t), &bo);

	for (uint64_t i = 0; !err && i < NR_WORDS; i++)
		((volatile uint64_t *)bo.cpu)[i] = word(i);
	if (!err)
		err = pthread_create(&thread, NULL, read_all, NULL);
	return err > 0 ? report(err, "pthread_create: %s", strerror(err)) : err;
}

static int reads_check(struct job_gpu *gpu)
{
	uint64_t before = rounds;

	for (unsigned int naps = 0; rounds == before && naps < 30000; naps++)
		usleep(1000);
	if (rounds == before)
		return report(ETIME, "gpu %#x: the thread that reads VRAM stands still", gpu->gpu->gpu_id);
	if (wrong)
		return report(EILSEQ, "gpu %#x: the CPU has read %" PRIu64 " wrong words of VRAM", gpu->gpu->gpu_id, wrong);
	return 0;
}

static int reads_teardown(struct job_gpu *gpu)
{
	stop = 1;
	pthread_join(thread, NULL);
	return kfd_bo_free(gpu->kfd, &bo);
}

const struct job_extra job_extra_reads = { "reads", reads_setup, NULL, reads_check, reads_teardown };
