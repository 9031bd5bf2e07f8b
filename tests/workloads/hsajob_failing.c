// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob's kernel whose assertion fails when it is let go. The runtime's trap handler halts its waves; then the runtime
 * calls back, and the queue is of no more use: each generation has a new one.
 */
#include <errno.h>
#include <time.h>

#include "gpujob_busy.h"
#include "hsajob.h"
#include "report.h"

#define PATIENCE_MS 30000

/* As failing.cl has them. */
struct hsa_failing_arguments {
	const uint32_t *gate;
	uint32_t *went_on;
	uint8_t hidden[256]; /* of the compiler */
	uint32_t open, has_gone_on;
};

static void queue_failed(hsa_status_t status, hsa_queue_t *queue, void *data)
{
	struct hsa_failing *failing = data;

	(void)queue;
	__atomic_store_n(&failing->told, status, __ATOMIC_RELEASE);
}

static int start(struct hsa_failing *failing)
{
	struct hsa_failing_arguments *arguments = failing->arguments;
	int err;

	failing->told = HSA_STATUS_SUCCESS;
	err = hsa_must(hsa_queue_create(failing->gpu->agent, HSA_PACKETS, HSA_QUEUE_TYPE_SINGLE, queue_failed, failing,
					UINT32_MAX, UINT32_MAX, &failing->queue), "hsa_queue_create");
	if (err)
		return err;
	*arguments = (struct hsa_failing_arguments){ .gate = &arguments->open, .went_on = &arguments->has_gone_on };
	hsa_kernel_put(&failing->kernel, failing->queue, BUSY_GROUP, arguments, (hsa_signal_t){ 0 });
	return 0;
}

static int end(struct hsa_failing *failing)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	hsa_status_t told = HSA_STATUS_SUCCESS;

	__atomic_store_n(&failing->arguments->open, 1, __ATOMIC_RELEASE);
	for (unsigned int ms = 0; told == HSA_STATUS_SUCCESS && ms < PATIENCE_MS; ms++) {
		nanosleep(&nap, NULL);
		told = __atomic_load_n(&failing->told, __ATOMIC_ACQUIRE);
	}
	if (told != HSA_STATUS_ERROR_EXCEPTION || failing->arguments->has_gone_on)
		return report(EILSEQ, "an assertion failed, and the runtime tells of status %#x%s", told,
			      failing->arguments->has_gone_on ? ", while the kernel went on" : "");
	return hsa_must(hsa_queue_destroy(failing->queue), "hsa_queue_destroy");
}

int hsa_failing_open(struct hsa_failing *failing, struct hsa_job *job)
{
	int err;

	failing->gpu = &job->gpus[0];
	err = hsa_allocate(job, job->memory, sizeof(*failing->arguments), (void **)&failing->arguments);
	err = err ? err : hsa_kernel_load(&failing->kernel, failing->gpu, failing->path, "failing.kd");
	return err ? err : start(failing);
}

int hsa_failing_round(struct hsa_failing *failing)
{
	int err = end(failing);

	return err ? err : start(failing);
}

int hsa_failing_close(struct hsa_failing *failing)
{
	int err = end(failing);

	err = err ? err : hsa_must(hsa_executable_destroy(failing->kernel.executable), "hsa_executable_destroy");
	return err ? err : hsa_must(hsa_amd_memory_pool_free(failing->arguments), "freeing memory");
}
