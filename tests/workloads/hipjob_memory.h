/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hipjob: a program on the HIP runtime that checks its own results.
 *
 * It has memory of each kind that HIP gives. Data go up and come back by hipMemcpy. Functions that return int give 0 or
 * -errno and have reported the failure.
 */
#ifndef WORKLOADS_HIPJOB_MEMORY_H
#define WORKLOADS_HIPJOB_MEMORY_H

#include "hip.h"
#include "pair.h"

#define HIP_MAX_GPUS 8

enum hip_kind {
	HIP_KIND_DEVICE,
	HIP_KIND_FINE_GRAINED,
	HIP_KIND_UNCACHED,
	HIP_KIND_PINNED,
	HIP_KIND_COHERENT,
	HIP_KIND_REGISTERED,
	HIP_KIND_MANAGED,
	HIP_KIND_VIRTUAL, /* only where it is asked for */
	HIP_KINDS
};

struct hip_gpu {
	void *kept[HIP_KINDS]; /* written once */
	hip_memory_t handle;   /* of the virtual one */
	hip_stream_t stream;
	hip_event_t event; /* recorded when data of the stream are written */
	void *pooled;	   /* by hipMallocAsync; another one in each generation */
};

/* A kernel that runs from one generation to the next (gpujob_busy.h). */
struct hip_kernel {
	hip_module_t module; /* NULL: no kernels were asked for */
	hip_function_t function;
	hip_stream_t stream;
	struct busy *data; /* device memory */
	uint32_t *gate;	   /* pinned memory: the kernel ends when it is not 0 */
	uint8_t *filled, *copied; /* device memory, by the runtime's own kernels, which wait behind this one */
};

struct hip_job {
	struct hip_gpu gpus[HIP_MAX_GPUS];
	unsigned int nr_gpus, nr_kinds;
	struct hip_kernel kernels[HIP_MAX_GPUS];
	int version;	/* of the runtime */
	uint64_t bytes; /* of each buffer */
	void *scratch;
};

/* Starts the runtime, allocates on all its GPUs, writes the kept data. @bytes: of each buffer, whole pages. @has_virtual: also
 * by hipMemCreate. */
int hip_job_open(struct hip_job *job, uint64_t bytes, bool has_virtual);
/* Compares the stream-ordered memory of generation @generation, frees it, allocates and writes the next. */
int hip_job_round(struct hip_job *job, uint64_t generation);
/* Compares all kept data and the stream-ordered ones of @generation. Adds what was compared to *bytes. */
int hip_job_check(struct hip_job *job, uint64_t generation, uint64_t *bytes);
int hip_job_close(struct hip_job *job);

/* Loads the code of the file @code on all GPUs and starts it with the data of @generation. */
int hip_kernels_open(struct hip_job *job, const char *code, uint64_t generation);
/* Lets the kernels of @generation end, compares what they have computed, and starts the next. */
int hip_kernels_round(struct hip_job *job, uint64_t generation);
/* The same without a next, and frees all. */
int hip_kernels_close(struct hip_job *job, uint64_t generation);

/* Writes data of @seed, @job->bytes of it, to memory of a GPU; whether they are there, as @what is called. */
int hip_put(struct hip_job *job, void *memory, uint64_t seed);
int hip_get(struct hip_job *job, const void *memory, uint64_t seed, const char *what);

/* Memory of @gpu by hipMemCreate. @bytes: whole blocks. Mapped at @at, for @nr_gpus GPUs from the first on; both go. */
#define HIP_BLOCK_BYTES (2u << 20)
int hip_virtual_create(int gpu, uint64_t bytes, hip_memory_t *ret);
int hip_virtual_map(void *at, uint64_t bytes, hip_memory_t memory, unsigned int nr_gpus);
int hip_virtual_free(void *at, uint64_t bytes, hip_memory_t memory);

/* Memory that two processes share: by hipIpcGetMemHandle, or by virtual memory (hipMemCreate). */
enum hip_sharing { HIP_SHARE_NOTHING, HIP_SHARE_IPC, HIP_SHARE_VMM, HIP_SHARINGS };

struct hip_share {
	enum hip_sharing kind;
	struct pair *pair; /* the first process allocates */
	struct pair_memory halves;
	struct hip_job *job;
	uint64_t bytes;
	void *memory;	     /* NULL: nothing is shared */
	hip_event_t event;   /* of IPC: both wait for it */
	hip_memory_t handle; /* of virtual memory */
};

/* In both processes, with their own jobs. */
int hip_share_open(struct hip_share *share, struct hip_job *job);
/* A generation of it; *@stop of the first process becomes that of both. */
int hip_share_round(struct hip_share *share, bool *stop);
int hip_share_close(struct hip_share *share);

#endif
