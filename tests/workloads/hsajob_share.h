/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that two processes of hsajob share. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_HSAJOB_SHARE_H
#define WORKLOADS_HSAJOB_SHARE_H

#include <stdbool.h>

#include "hsajob.h"
#include "pair.h"

enum hsa_sharing { HSA_SHARE_NOTHING, HSA_SHARE_IPC, HSA_SHARE_VMEM };

struct hsa_share {
	enum hsa_sharing kind;
	struct pair pair; /* the first process allocates */
	struct pair_memory halves;
	struct hsa_job *job;
	uint64_t bytes;
	void *memory;
	uint64_t vmem_handle;
};

/* In both processes, with their own jobs. */
int hsa_share_open(struct hsa_share *share, struct hsa_job *job);
int hsa_share_close(struct hsa_share *share);

#endif
