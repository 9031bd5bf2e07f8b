/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpujob: a GPU process that knows at any moment what every byte of its memory has to be.
 *
 * Per GPU: static data of every memory kind, written once; a chain of copies through all kinds whose
 * data changes with each generation; a second queue that always has work left, with a counter that
 * the GPU increments. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_GPUJOB_H
#define WORKLOADS_GPUJOB_H

#include <stdbool.h>
#include <stdint.h>

#include "kfd.h"
#include "sdma.h"

/* What SIGUSR2 damages, so that a test can see that damage is found. */
enum job_spoil { JOB_SPOIL_NOTHING, JOB_SPOIL_VRAM, JOB_SPOIL_GTT, JOB_SPOIL_USERPTR, JOB_SPOIL_PACKET };

struct job_options {
	bool all_gpus;
	unsigned int gpus[KFD_MAX_GPUS]; /* indices, in sysfs order */
	unsigned int nr_gpus;
	uint64_t vram_bytes, gtt_bytes, userptr_bytes; /* static data per GPU */
	uint64_t chain_bytes;
	unsigned int buffers; /* into which each kind of static data is divided */
	unsigned int children;
	unsigned int busy_units; /* copies in one batch of the busy queue; 0: no such queue */
	unsigned int pace_ms;	 /* between generations */
	uint64_t seed;
	bool reopen_kfd, reopen_render; /* open it once more */
	bool reopen_first;		/* the unused file before the one that is used */
	bool kfd_last;			/* /dev/kfd has a higher number than the render nodes */
	bool lone;			/* GPUs that are not used are not opened */
	bool split;			/* process n uses only the n-th of the GPUs */
	bool apart;			/* no GPU reaches another one's VRAM */
	bool ib;			/* the batches of the busy queue are in indirect buffers */
	bool events;			/* sleep in WAIT_EVENTS instead of nanosleep */
	bool background;
	uint64_t extras; /* bits of gpujob_extra.h */
	bool extras_last; /* in the last process only */
	enum job_spoil spoil;
	const char *state_path;
};

/* Prints the usage and returns false when the arguments are not understood. */
bool job_options_parse(int argc, char **argv, struct job_options *options);

#define JOB_LOG_SLOTS 1024u

/* What the GPU writes for the CPU to check; lies in a GTT BO. */
struct job_log {
	uint32_t chain_fence, busy_fence;
	uint32_t gate; /* the busy queue waits for it; written by the CPU */
	uint32_t reserved;
	uint64_t chain_adds, busy_adds;
	uint64_t busy_begun; /* batches in indirect buffers, up to their gates */
	uint32_t slots[JOB_LOG_SLOTS];
};

/* Static data. */
struct job_buffer {
	struct kfd_bo bo;
	uint64_t seed;
};

enum { JOB_SRC, JOB_GTT, JOB_VRAM_A, JOB_VRAM_B, JOB_INBOX, JOB_DST, JOB_CHAIN_LENGTH };

struct job_gpu {
	struct kfd *kfd;
	struct kfd_gpu *gpu;
	const struct job_options *options;
	uint64_t seed;
	unsigned int process;	/* 0: the parent, else the child's number */
	struct job_gpu *peer; /* whose inbox the chain passes through; NULL: its own */

	struct job_buffer *statics;
	unsigned int nr_statics;
	struct kfd_bo chain[JOB_CHAIN_LENGTH];
	struct kfd_bo window; /* through which the CPU sees what it cannot see */
	struct kfd_bo busy_src, busy_dst, busy_ib;
	struct kfd_bo log_bo;
	volatile struct job_log *log;

	struct sdma_queue chain_queue, busy_queue;
	struct kfd_event event, never; /* @never is waited for and never signaled */
	uint32_t fence;		       /* last value submitted to the chain queue */
	uint64_t chain_adds;	       /* submitted */
	uint32_t batch;		       /* last batch submitted to the busy queue */
	uint64_t generation;	       /* of the data in the chain */
};

int job_gpu_setup(struct job_gpu *job);
/* After all GPUs were set up. */
int job_gpu_connect(struct job_gpu *job, struct job_gpu *peer);
/* Lets the busy queue go one batch further. */
int job_gpu_busy_step(struct job_gpu *job);
/* Sends generation @generation through the chain and checks what arrives. */
int job_gpu_round(struct job_gpu *job, uint64_t generation);
/* Waits for the last batch that was let go. */
int job_gpu_busy_wait(struct job_gpu *job);
/* Where the GPU finds a field of job->log. */
uint64_t job_gpu_log_va(const struct job_gpu *job, const volatile void *field);
int job_gpu_teardown(struct job_gpu *job);

/* Copies by the chain queue and waits until it is done. */
int job_gpu_copy(struct job_gpu *job, uint64_t dst, uint64_t src, uint64_t bytes);

/* gpujob_check.c: every byte of everything; adds what was compared to *bytes. */
int job_gpu_check(struct job_gpu *job, uint64_t *bytes);

/* gpujob_check.c: one wrong bit in the last byte of static data, or a packet too many. */
int job_gpu_spoil(struct job_gpu *job, enum job_spoil what);

static inline uint64_t job_chain_seed(const struct job_gpu *job, uint64_t generation)
{
	return job->seed ^ generation << 20;
}

/* Where the data of the chain begins in its n-th buffer: nowhere the same, nowhere a page. */
static inline uint64_t job_chain_offset(unsigned int n)
{
	return 4 * n + n % 2;
}

static inline uint64_t job_chain_va(const struct job_gpu *job, unsigned int n)
{
	const struct kfd_bo *bo = n == JOB_INBOX && job->peer ? &job->peer->chain[n] : &job->chain[n];

	return bo->va + job_chain_offset(n);
}

/* Bytes that the n-th unit of a batch copies. */
#define JOB_BUSY_UNIT_BYTES 4096u

#endif
