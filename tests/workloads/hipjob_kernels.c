// SPDX-License-Identifier: GPL-2.0-only
/*
 * hipjob's kernels. Each runs in a stream that the others do not wait for, since it ends only when it is let go. Behind it
 * in that stream, the runtime's own kernels fill memory piece by piece and copy it.
 */
#include <errno.h>
#include <inttypes.h>

#include "gpujob_busy.h"
#include "hipjob_memory.h"
#include "report.h"

#define FILLS	   32u
#define FILL_BYTES 1024u

static uint8_t fill_value(uint64_t generation, unsigned int fill)
{
	return (uint8_t)(generation * 7 + fill);
}

static int fills_start(const struct hip_kernel *kernel, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < FILLS; i++)
		err = HIP(MemsetAsync, kernel->filled + i * FILL_BYTES, fill_value(generation, i), FILL_BYTES, kernel->stream);
	return err ? err : HIP(MemcpyAsync, kernel->copied, kernel->filled, FILLS * FILL_BYTES, HIP_DEVICE_TO_DEVICE, kernel->stream);
}

static int fills_check(const struct hip_kernel *kernel, uint64_t generation)
{
	static uint8_t bytes[FILLS * FILL_BYTES];
	int err = HIP(Memcpy, bytes, kernel->copied, sizeof(bytes), HIP_DEVICE_TO_HOST);

	for (unsigned int i = 0; !err && i < sizeof(bytes); i++) {
		if (bytes[i] != fill_value(generation, i / FILL_BYTES))
			err = report(EILSEQ, "generation %" PRIu64 ": byte %u that kernels filled and copied is %#x, not %#x",
				     generation, i, bytes[i], fill_value(generation, i / FILL_BYTES));
	}
	return err;
}

static int start(struct hip_job *job, unsigned int gpu, uint64_t generation)
{
	static struct busy busy;
	struct hip_kernel *kernel = &job->kernels[gpu];
	struct busy *data = kernel->data;
	uint32_t *words = data->words, *done = &data->done, *rounds = data->rounds, least = BUSY_LEAST;
	double *sums = data->sums;
	void *arguments[] = { &words, &sums, &done, &rounds, &kernel->gate, &least };
	int err;

	busy_start(&busy, generation);
	*kernel->gate = 0;
	err = HIP(Memcpy, data, &busy, sizeof(busy), HIP_HOST_TO_DEVICE);
	err = err ? err : HIP(ModuleLaunchKernel, kernel->function, BUSY_GROUPS, 1, 1, BUSY_GROUP, 1, 1, 0, kernel->stream,
			      arguments, NULL);
	return err ? err : fills_start(kernel, generation);
}

static int end(struct hip_job *job, unsigned int gpu, uint64_t generation)
{
	static struct busy busy;
	struct hip_kernel *kernel = &job->kernels[gpu];
	int err;

	__atomic_store_n(kernel->gate, 1, __ATOMIC_RELEASE);
	err = HIP(StreamSynchronize, kernel->stream);
	err = err ? err : HIP(Memcpy, &busy, kernel->data, sizeof(busy), HIP_DEVICE_TO_HOST);
	err = err ? err : busy_check(&busy, generation, gpu);
	return err ? err : fills_check(kernel, generation);
}

static int gpu_open(struct hip_job *job, unsigned int gpu, const char *code, uint64_t generation)
{
	struct hip_kernel *kernel = &job->kernels[gpu];
	int err = HIP(SetDevice, gpu);

	err = err ? err : HIP(ModuleLoad, &kernel->module, code);
	err = err ? err : HIP(ModuleGetFunction, &kernel->function, kernel->module, "busy");
	err = err ? err : HIP(StreamCreateWithFlags, &kernel->stream, HIP_NON_BLOCKING);
	err = err ? err : HIP(Malloc, (void **)&kernel->data, sizeof(*kernel->data));
	err = err ? err : HIP(Malloc, (void **)&kernel->filled, FILLS * FILL_BYTES);
	err = err ? err : HIP(Malloc, (void **)&kernel->copied, FILLS * FILL_BYTES);
	err = err ? err : HIP(HostMalloc, (void **)&kernel->gate, sizeof(*kernel->gate), HIP_COHERENT);
	return err ? err : start(job, gpu, generation);
}

static int gpu_close(struct hip_job *job, unsigned int gpu, uint64_t generation)
{
	struct hip_kernel *kernel = &job->kernels[gpu];
	int err = HIP(SetDevice, gpu);

	err = err ? err : end(job, gpu, generation);
	err = err ? err : HIP(StreamDestroy, kernel->stream);
	err = err ? err : HIP(ModuleUnload, kernel->module);
	err = err ? err : HIP(Free, kernel->data);
	err = err ? err : HIP(Free, kernel->filled);
	err = err ? err : HIP(Free, kernel->copied);
	return err ? err : HIP(HostFree, kernel->gate);
}

int hip_kernels_open(struct hip_job *job, const char *code, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = gpu_open(job, i, code, generation);
	return err;
}

int hip_kernels_round(struct hip_job *job, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		err = HIP(SetDevice, i);
		err = err ? err : end(job, i, generation);
		err = err ? err : start(job, i, generation + 1);
	}
	return err;
}

int hip_kernels_close(struct hip_job *job, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = gpu_close(job, i, generation);
	return err;
}
