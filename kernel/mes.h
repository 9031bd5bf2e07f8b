/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues that the scheduler of the GPU maps (MES: gfx11). CHECKPOINT saves them, but kernels do not bring them back by
 * RESTORE: most refuse it, some crash over it. So RESTORE gets the state without them, and each is recreated by
 * CREATE_QUEUE, which the stopped process itself is made to call after RESUME, as the KFD takes it from nobody else. A
 * new queue begins at 0, and no call says otherwise: packets that do nothing bring it to where the old one was.
 *
 * Nothing is asked of the GPU that a program which begins does not ask. So a queue has to be between packets, without a
 * wave and without an end of a kernel that is still to be told of; kernel/mes.c says what is refused.
 */
#ifndef KERNEL_MES_H
#define KERNEL_MES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/driver.h"
#include "kernel/state.h"

enum mes_verdict {
	MES_FINE, /* it can be recreated */
	MES_BUSY, /* not now, but when it has done what it has to do */
	MES_NEVER,
};

/* Whether queues on @gpu are of this kind. Pure. */
bool mes_maps(const struct topology_node *gpu);

/* Whether such a queue can be recreated, and why not, in words. A record may have no MQD. Pure. */
enum mes_verdict mes_judge(const struct queue_record *record, char why[LIMITS_TEXT_MAX]);

/*
 * Lists the queues of *state if one is of this kind, by ascending number. *ret is heap memory of the caller. @machine:
 * GPUs by actual ids, of which the state knows; @by_user: offsets of /dev/kfd have user gpu ids. 0, or -errno after
 * fail(): -EOPNOTSUPP where one cannot be recreated, or not with the number and the doorbell that it had.
 */
int mes_list(const struct kfd_state *state, const struct topology *machine, bool by_user, struct queue_record **ret,
	     size_t *ret_nr);

/* Takes those that are recreated out of a state. */
void mes_cut(struct kfd_state *state, const struct topology *machine);

/* A call of CREATE_QUEUE. */
struct mes_step {
	size_t queue; /* whose memory and GPU it is made with */
	uint32_t number;
	bool is_placeholder; /* only takes the number until the others are there */
};

/*
 * The calls that make all of @queues, in order. *ret is heap memory of the caller. 0; -ENOMEM; -EOPNOTSUPP after fail()
 * where a queue would get another doorbell than it had: numbers and doorbells are the lowest free ones. Pure.
 */
int mes_plan(const struct queue_record *queues, size_t nr, struct mes_step **ret, size_t *ret_nr);

#endif
