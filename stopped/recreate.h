/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues of MES (kernel/mes.h) are created in a stopped process. */
#ifndef STOPPED_RECREATE_H
#define STOPPED_RECREATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel.h"

/*
 * Creates them in process @pid, whose threads the caller traces and are in ptrace stops, after RESUME. @kfd: a file of
 * the caller's own. 0, or -errno after fail(): the process is not to run then.
 */
int mes_recreate(int kfd, pid_t pid, const struct queue_record *queues, size_t nr);

/* ---- SDMA queues of the caller, so that queues get the numbers that they had ---- */

struct sdma_slot {
	uint32_t gpu_id, number, doorbell; /* actual gpu id; the caller's number of the queue */
};

struct sdma_buffer {
	uint64_t handle;
	uint32_t gpu_id; /* actual */
};

struct sdma_slots {
	int kfd;
	struct sdma_slot *held;
	size_t nr;
	struct sdma_buffer *buffers;
	size_t nr_buffers;
};

/*
 * Takes what is free up to those that SDMA queues of @queues had. *slots begins as zeros, and sdma_slots_done() follows
 * whatever comes. @kfd: a file of the caller's own, borrowed. 0, or -errno after fail(): -EBUSY where another process
 * has one of them.
 */
int sdma_slots_take(int kfd, const struct queue_record *queues, size_t nr, struct sdma_slots *slots);

/* Frees the number of @queue, which the next SDMA queue on its GPU gets; nothing for other queues. 0, or -errno after
 * fail(). */
int sdma_slots_free_for(struct sdma_slots *slots, const struct queue_record *queue);

void sdma_slots_done(struct sdma_slots *slots);

#endif
