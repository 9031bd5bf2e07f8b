/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control stacks of compute queues, which drivers can leave out.
 *
 * On gfx9 the control stack of preempted waves is in memory of the driver, behind the MQD, and RESTORE makes that
 * memory as large as what was saved. Linux 7.2.12 reads the size before it is known (mqd_manager_init_v9()), and saves
 * nothing: a restored queue would write the stacks of its next waves past the end. The MQD, which is saved, says how
 * large the stack is and whether any wave was on it; without one, an empty stack is what has to be restored.
 */
#ifndef KERNEL_STACKS_H
#define KERNEL_STACKS_H

#include "amdgpu_plugin_topology.h"
#include "kernel/driver.h"
#include "kernel/kfd.h"
#include "kernel/records.h"

enum stack {
	STACK_SAVED,	 /* or there is none */
	STACK_ELSEWHERE, /* in the memory for waves (gfx10) */
	STACK_EMPTY,	 /* left out, and nothing was on it */
	STACK_LOST,	 /* left out, and waves were on it, or that cannot be told */
};

/* Of a queue on @gpu. Pure. */
enum stack stack_of(const struct queue_record *record, const struct topology_node *gpu);

/*
 * Adds the stacks that were left out, empty, to the state of a process; @nodes has its GPUs by user ids. Those on which
 * waves were get one at restore alone, together with MQDs that know of no wave: where @ret_lost is not NULL, and then
 * it has their number. So do those that are elsewhere, where RESTORE of @driver checks their sizes: it ignores their
 * bytes. 0; -ENOMEM, or -EPROTO for a state that cannot be read, without a message.
 */
int stacks_add(struct kfd_state *state, const struct topology *nodes, const struct driver_release *driver,
	       unsigned int *ret_lost);

#endif
