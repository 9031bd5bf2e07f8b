/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What drivers are known not to save or restore: refused at dump, where the process can still go on, not found out at
 * restore.
 */
#ifndef KERNEL_LIMITS_H
#define KERNEL_LIMITS_H

#include <sys/types.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/driver.h"
#include "kernel/kfd.h"
#include "kernel/records.h"

#define LIMITS_TEXT_MAX 200

enum limit {
	LIMIT_NONE, /* nothing is known against it */
	LIMIT_LOSS, /* the process would not come back whole: whoever wants to may try */
	LIMIT_HARM, /* RESTORE would harm the machine: never tried */
};

/*
 * Whether the queue of @record on @gpu, which is of @machine, cannot be restored by the driver that saved it, and why,
 * in words. Pure.
 */
enum limit limits_of_queue(const struct queue_record *record, const struct topology_node *gpu,
			   const struct topology *machine, const struct driver_release *driver,
			   char why[LIMITS_TEXT_MAX]);

/* The same for a compute queue on @gpu as ROCm makes it there, without having seen one. Pure. */
enum limit limits_of_gpu(const struct topology_node *gpu, const struct topology *machine,
			 const struct driver_release *driver, char why[LIMITS_TEXT_MAX]);

/*
 * Looks at all queues in the state that CHECKPOINT gave of process @pid; @machine has its GPUs by their actual ids.
 * -EOPNOTSUPP when the state cannot be read, or when @driver is known not to restore one; with
 * @try, a warning and 0 for a loss.
 */
int limits_check_queues(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			const struct driver_release *driver, bool try);

/*
 * Before RESTORE, whatever saved the state, which names the machine's GPUs by now: -EOPNOTSUPP when
 * it cannot be read, or when @driver would do harm.
 */
int limits_check_harm(const struct kfd_state *state, const struct topology *machine,
		      const struct driver_release *driver);

#endif
