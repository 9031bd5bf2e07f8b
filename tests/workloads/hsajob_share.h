/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that two processes of hsajob share. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_HSAJOB_SHARE_H
#define WORKLOADS_HSAJOB_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hsajob.h"

enum hsa_sharing { HSA_SHARE_NOTHING, HSA_SHARE_IPC, HSA_SHARE_VMEM };

/* Shared by both. */
struct hsa_share_control {
	_Atomic uint32_t meetings[2]; /* that each has come to */
	_Atomic bool stop, failed;
	hsa_amd_ipc_memory_t handle;
};

struct hsa_share {
	enum hsa_sharing kind;
	unsigned int number; /* 0: the process that allocates */
	int ends[2];	     /* of a socket, until it is set up */
	struct hsa_share_control *control;
	struct hsa_job *job;
	uint64_t bytes, generation;
	void *memory;
	uint64_t vmem_handle;
};

/* Before the processes part. */
int hsa_share_prepare(struct hsa_share *share, enum hsa_sharing kind);
/* In both processes, with their own jobs. */
int hsa_share_open(struct hsa_share *share, struct hsa_job *job);
/* Checks the last generation, writes the next, and checks that. *@stop of the first process becomes that of both. */
int hsa_share_round(struct hsa_share *share, bool *stop);
int hsa_share_close(struct hsa_share *share);

#endif
