/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compiled code of hsajob's two processes: each one's kernel (gpujob_busy.h) computes in memory of the other process,
 * which checks it there. It runs from one generation to the next. Functions that return int give 0 or -errno and have
 * reported the failure.
 */
#ifndef WORKLOADS_HSAJOB_CODE_H
#define WORKLOADS_HSAJOB_CODE_H

#include "hsajob_share.h"

struct hsa_code {
	const char *path; /* NULL: no kernels were asked for */
	struct hsa_share *share;
	struct hsa_gpu *gpu; /* that executes the kernel */
	hsa_queue_t *queue;
	hsa_executable_t executable;
	uint64_t object;
	uint32_t group_bytes;
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
