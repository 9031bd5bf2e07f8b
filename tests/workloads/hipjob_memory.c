// SPDX-License-Identifier: GPL-2.0-only
/*
 * hipjob's memory that it has for itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "hipjob_memory.h"
#include "pattern.h"
#include "report.h"

static const char *const kind_names[HIP_KINDS] = {
	[HIP_KIND_DEVICE] = "device memory",
	[HIP_KIND_FINE_GRAINED] = "fine-grained device memory",
	[HIP_KIND_UNCACHED] = "uncached device memory",
	[HIP_KIND_PINNED] = "pinned memory",
	[HIP_KIND_COHERENT] = "coherent pinned memory",
	[HIP_KIND_REGISTERED] = "registered memory",
	[HIP_KIND_MANAGED] = "managed memory",
	[HIP_KIND_VIRTUAL] = "virtual memory",
};

static uint64_t kept_seed(unsigned int gpu, unsigned int kind)
{
	return (uint64_t)(gpu + 1) << 48 | (kind + 1) << 8;
}

static uint64_t pooled_seed(unsigned int gpu, uint64_t generation)
{
	return (uint64_t)(gpu + 1) << 48 | (generation + 1) << 16;
}

int hip_put(struct hip_job *job, void *memory, uint64_t seed)
{
	pattern_fill(job->scratch, job->bytes, seed, 0);
	return HIP(Memcpy, memory, job->scratch, job->bytes, HIP_HOST_TO_DEVICE);
}

static int scratch_check(const struct hip_job *job, uint64_t seed, const char *what)
{
	struct pattern_diff diff;

	if (pattern_check(job->scratch, job->bytes, seed, 0, &diff))
		return 0;
	return report(EILSEQ, "%s: byte %" PRIu64 " is %#x, not %#x", what, diff.offset, diff.got, diff.want);
}

int hip_get(struct hip_job *job, const void *memory, uint64_t seed, const char *what)
{
	int err = HIP(Memcpy, job->scratch, memory, job->bytes, HIP_DEVICE_TO_HOST);

	return err ? err : scratch_check(job, seed, what);
}

/* ---- stream-ordered memory ---- */

static int pooled_put(struct hip_job *job, unsigned int i, uint64_t generation)
{
	struct hip_gpu *gpu = &job->gpus[i];
	int err = HIP(MallocAsync, &gpu->pooled, job->bytes, gpu->stream);

	pattern_fill(job->scratch, job->bytes, pooled_seed(i, generation), 0);
	err = err ? err : HIP(MemcpyAsync, gpu->pooled, job->scratch, job->bytes, HIP_HOST_TO_DEVICE, gpu->stream);
	err = err ? err : HIP(EventRecord, gpu->event, gpu->stream);
	return err ? err : HIP(EventSynchronize, gpu->event);
}

static int pooled_get(struct hip_job *job, unsigned int i, uint64_t generation)
{
	struct hip_gpu *gpu = &job->gpus[i];
	int err = HIP(MemcpyAsync, job->scratch, gpu->pooled, job->bytes, HIP_DEVICE_TO_HOST, gpu->stream);

	err = err ? err : HIP(StreamSynchronize, gpu->stream);
	return err ? err : scratch_check(job, pooled_seed(i, generation), "stream-ordered memory");
}

int hip_job_round(struct hip_job *job, uint64_t generation)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		err = HIP(SetDevice, i);
		err = err ? err : pooled_get(job, i, generation);
		err = err ? err : HIP(FreeAsync, job->gpus[i].pooled, job->gpus[i].stream);
		err = err ? err : pooled_put(job, i, generation + 1);
	}
	return err;
}

/* ---- virtual memory ---- */

int hip_virtual_create(int gpu, uint64_t bytes, hip_memory_t *ret)
{
	const struct hip_memory_properties properties = {
		.type = HIP_MEMORY_PINNED,
		.handle_type = HIP_HANDLE_FD,
		.location = { HIP_LOCATION_DEVICE, gpu },
	};

	return HIP(MemCreate, ret, bytes, &properties, 0);
}

int hip_virtual_map(void *at, uint64_t bytes, hip_memory_t memory, unsigned int nr_gpus)
{
	struct hip_access access[HIP_MAX_GPUS];
	int err = HIP(MemMap, at, bytes, 0, memory, 0);

	for (unsigned int i = 0; i < nr_gpus; i++)
		access[i] = (struct hip_access){ { HIP_LOCATION_DEVICE, (int)i }, HIP_ACCESS_RW };
	return err ? err : HIP(MemSetAccess, at, bytes, access, nr_gpus);
}

int hip_virtual_free(void *at, uint64_t bytes, hip_memory_t memory)
{
	int err = HIP(MemUnmap, at, bytes);

	return err ? err : HIP(MemRelease, memory);
}

static int virtual_open(const struct hip_job *job, unsigned int i, hip_memory_t *handle, void **ret)
{
	int err = hip_virtual_create((int)i, HIP_BLOCK_BYTES, handle);

	err = err ? err : HIP(MemAddressReserve, ret, HIP_BLOCK_BYTES, 0, NULL, 0);
	return err ? err : hip_virtual_map(*ret, HIP_BLOCK_BYTES, *handle, job->nr_gpus);
}

/* ---- all of it ---- */

static int kept_allocate(struct hip_job *job, unsigned int i, unsigned int kind)
{
	void **ret = &job->gpus[i].kept[kind];

	switch (kind) {
	case HIP_KIND_DEVICE:
		return HIP(Malloc, ret, job->bytes);
	case HIP_KIND_FINE_GRAINED:
		return HIP(ExtMallocWithFlags, ret, job->bytes, HIP_FINE_GRAINED);
	case HIP_KIND_UNCACHED:
		return HIP(ExtMallocWithFlags, ret, job->bytes, HIP_UNCACHED);
	case HIP_KIND_PINNED:
		return HIP(HostMalloc, ret, job->bytes, 0);
	case HIP_KIND_COHERENT:
		return HIP(HostMalloc, ret, job->bytes, HIP_COHERENT);
	case HIP_KIND_MANAGED:
		return HIP(MallocManaged, ret, job->bytes, HIP_ATTACH_GLOBAL);
	case HIP_KIND_VIRTUAL:
		return virtual_open(job, i, &job->gpus[i].handle, ret);
	}
	*ret = aligned_alloc(4096, job->bytes);
	return *ret ? HIP(HostRegister, *ret, job->bytes, 0) : report(ENOMEM, "no memory to register");
}

static int kept_free(const struct hip_gpu *gpu, unsigned int kind)
{
	void *memory = gpu->kept[kind];
	int err;

	switch (kind) {
	case HIP_KIND_PINNED:
	case HIP_KIND_COHERENT:
		return HIP(HostFree, memory);
	case HIP_KIND_REGISTERED:
		err = HIP(HostUnregister, memory);
		free(memory);
		return err;
	case HIP_KIND_VIRTUAL:
		err = hip_virtual_free(memory, HIP_BLOCK_BYTES, gpu->handle);
		return err ? err : HIP(MemAddressFree, memory, HIP_BLOCK_BYTES);
	}
	return HIP(Free, memory);
}

static int gpu_open(struct hip_job *job, unsigned int i)
{
	struct hip_gpu *gpu = &job->gpus[i];
	int err = HIP(SetDevice, i);

	for (unsigned int kind = 0; !err && kind < job->nr_kinds; kind++) {
		err = kept_allocate(job, i, kind);
		err = err ? err : hip_put(job, gpu->kept[kind], kept_seed(i, kind));
	}
	err = err ? err : HIP(StreamCreate, &gpu->stream);
	err = err ? err : HIP(EventCreateWithFlags, &gpu->event, HIP_NO_TIMING);
	return err ? err : pooled_put(job, i, 0);
}

int hip_job_open(struct hip_job *job, uint64_t bytes, bool has_virtual)
{
	int nr, err = hip_load();

	job->bytes = bytes;
	job->nr_kinds = has_virtual ? HIP_KINDS : HIP_KIND_VIRTUAL;
	job->scratch = malloc(bytes);
	if (!err && !job->scratch)
		err = report(ENOMEM, "no memory for %" PRIu64 " bytes", bytes);
	err = err ? err : HIP(Init, 0);
	err = err ? err : HIP(RuntimeGetVersion, &job->version);
	err = err ? err : HIP(GetDeviceCount, &nr);
	if (!err && (nr < 1 || nr > HIP_MAX_GPUS))
		err = report(ENODEV, "%d GPUs, not 1 to %u", nr, HIP_MAX_GPUS);
	job->nr_gpus = err ? 0 : (unsigned int)nr;
	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = gpu_open(job, i);
	return err;
}

int hip_job_check(struct hip_job *job, uint64_t generation, uint64_t *bytes)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		err = HIP(SetDevice, i);
		for (unsigned int kind = 0; !err && kind < job->nr_kinds; kind++)
			err = hip_get(job, job->gpus[i].kept[kind], kept_seed(i, kind), kind_names[kind]);
		err = err ? err : pooled_get(job, i, generation);
		*bytes += (job->nr_kinds + 1) * job->bytes;
	}
	return err;
}

int hip_job_close(struct hip_job *job)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++) {
		struct hip_gpu *gpu = &job->gpus[i];

		err = HIP(SetDevice, i);
		err = err ? err : HIP(FreeAsync, gpu->pooled, gpu->stream);
		err = err ? err : HIP(StreamSynchronize, gpu->stream);
		err = err ? err : HIP(EventDestroy, gpu->event);
		err = err ? err : HIP(StreamDestroy, gpu->stream);
		for (unsigned int kind = 0; !err && kind < job->nr_kinds; kind++)
			err = kept_free(gpu, kind);
	}
	free(job->scratch);
	return err;
}
