/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hsajob: a program on the HSA runtime that checks its own results.
 *
 * Per GPU: data in VRAM that is written once, and a chain of copies that goes from locked memory of
 * the host into VRAM, from there into the VRAM of the next GPU (with one GPU: into other VRAM of its
 * own) and back to the host. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_HSAJOB_H
#define WORKLOADS_HSAJOB_H

#include <stdint.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "pair.h"

#define HSA_MAX_GPUS 64

enum { HSA_UP, HSA_ACROSS, HSA_DOWN, HSA_STEPS };

struct hsa_gpu {
	struct hsa_job *job;
	hsa_agent_t agent;
	hsa_amd_memory_pool_t vram;
	char name[64];
	uint64_t seed;
	struct hsa_gpu *peer;	      /* whose inbox the chain passes through; itself when it is alone */
	void *kept, *outbox, *inbox;  /* in VRAM */
	void *source, *source_device; /* locked memory: where the host and where the GPUs see it */
	void *sink;		      /* memory of the runtime's pool for the host */
	hsa_signal_t done[HSA_STEPS];
};

struct hsa_job {
	hsa_agent_t host;
	hsa_amd_memory_pool_t memory;
	struct hsa_gpu gpus[HSA_MAX_GPUS];
	hsa_agent_t agents[HSA_MAX_GPUS]; /* theirs */
	unsigned int nr_gpus;
	uint64_t bytes; /* of each buffer */
	/* The chain of the next generation does not begin before this is 0. */
	hsa_signal_t gate;
	uint64_t timeout; /* of a wait for copies, in ticks of the runtime */
};

/* 0, or -EIO: what the runtime has not done. */
int hsa_must(hsa_status_t status, const char *what);
/* Memory that all GPUs, and the host's agent, may use. */
int hsa_allocate(struct hsa_job *job, hsa_amd_memory_pool_t pool, uint64_t bytes, void **ret);
/* Begins a copy that waits for @after (unless its handle is 0) and sets @done from 1 to 0. */
int hsa_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, uint64_t bytes, hsa_signal_t after,
	     hsa_signal_t done);
/* Until the signal of what @what says is 0; @timeout: ticks. */
int hsa_wait(const struct hsa_gpu *gpu, hsa_signal_t done, uint64_t timeout, const char *what);

/* Starts the runtime, allocates on all its GPUs, writes the kept data. @bytes: of each buffer. */
int hsa_job_open(struct hsa_job *job, uint64_t bytes);
/* Hands the copies of generation @generation to the runtime; the gate may be shut. */
int hsa_job_submit(struct hsa_job *job, uint64_t generation);
/* Sleeps in the runtime until the chains of all GPUs are through, and checks what arrived. @timeout: ticks. */
int hsa_job_wait(struct hsa_job *job, uint64_t generation, uint64_t timeout);
/* Checks all kept data; nothing may be in flight. Adds what was compared to *bytes. */
int hsa_job_check(struct hsa_job *job, uint64_t *bytes);
int hsa_job_close(struct hsa_job *job);

/* Writes data of @seed, job->bytes of it, to memory of any GPU; whether they are there, as @what is called. */
int hsa_gpu_put(struct hsa_gpu *gpu, void *dst, uint64_t seed);
int hsa_gpu_get(struct hsa_gpu *gpu, const void *src, uint64_t seed, const char *what);

/* ---- hsajob_share.c: memory that two processes share ---- */

enum hsa_sharing { HSA_SHARE_NOTHING, HSA_SHARE_IPC, HSA_SHARE_VMEM };

struct hsa_share {
	enum hsa_sharing kind;
	struct pair *pair; /* the first process allocates */
	struct pair_memory halves;
	struct hsa_job *job;
	uint64_t bytes;
	void *memory;
	uint64_t vmem_handle;
};

/* In both processes, with their own jobs. */
int hsa_share_open(struct hsa_share *share, struct hsa_job *job);
int hsa_share_close(struct hsa_share *share);

/* ---- hsajob_kernel.c: compiled code ---- */

#define HSA_PACKETS 64u /* of a queue */

struct hsa_kernel {
	hsa_executable_t executable;
	uint64_t object;
	uint32_t group_bytes, private_bytes;
};

/* The kernel's descriptor has the name. */
int hsa_kernel_load(struct hsa_kernel *kernel, const struct hsa_gpu *gpu, const char *path, const char *name);
/* Groups of BUSY_GROUP items; @done of handle 0: nobody is told. */
void hsa_kernel_put(const struct hsa_kernel *kernel, hsa_queue_t *queue, uint32_t items, void *arguments, hsa_signal_t done);

/* ---- hsajob_failing.c: a kernel whose assertion fails; it waits from one generation to the next ---- */

struct hsa_failing {
	const char *path; /* NULL: it was not asked for */
	struct hsa_gpu *gpu;
	hsa_queue_t *queue;
	struct hsa_kernel kernel;
	struct hsa_failing_arguments *arguments; /* the host's memory */
	hsa_status_t told;
};

int hsa_failing_open(struct hsa_failing *failing, struct hsa_job *job);
/* Lets it fail, waits until the runtime tells, and starts the next. */
int hsa_failing_round(struct hsa_failing *failing);
/* The same without a next, and frees all. */
int hsa_failing_close(struct hsa_failing *failing);

/*
 * ---- hsajob_code.c: compiled code of two processes ----
 *
 * Each one's kernel (gpujob_busy.h) computes in memory of the other process, which checks it there. It runs from one
 * generation to the next.
 */

struct hsa_code {
	const char *path; /* NULL: no kernels were asked for */
	uint64_t stop_at; /* a generation in which the process stops while its kernel waits for private memory; 0: none */
	struct hsa_share *share;
	struct hsa_gpu *gpu; /* that executes the kernel */
	hsa_queue_t *queue;
	struct hsa_kernel kernel;
	hsa_signal_t done, copied;
	struct busy *own, *others; /* device memory; the second is the other process' own */
	struct busy *host;
	struct hsa_code_arguments *arguments; /* with the gate: the host's memory */
};

/* In both processes, after hsa_share_open(): starts the kernels of generation @generation. */
int hsa_code_open(struct hsa_code *code, struct hsa_share *share, uint64_t generation);
/* Lets the kernels of @generation end, compares what the other process' one has computed, and starts the next. */
int hsa_code_round(struct hsa_code *code, uint64_t generation);
/* The same without a next, and frees all. */
int hsa_code_close(struct hsa_code *code, uint64_t generation);

#endif
