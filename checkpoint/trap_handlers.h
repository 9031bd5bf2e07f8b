/* SPDX-License-Identifier: GPL-2.0-only */
/* The second-level trap handlers that a process has set, at dump. */
#ifndef CHECKPOINT_TRAP_HANDLERS_H
#define CHECKPOINT_TRAP_HANDLERS_H

#include "share/share.h"

/* A process of the KFD that is stopped and whose state was taken. */
struct trap_request {
	pid_t pid;
	const struct topology *nodes; /* by user gpu ids */
	const struct task_files *files;
	const struct survey *survey; /* of the same files */
	const struct driver_release *driver;
};

/*
 * Fills state->traps. For that, each of the process' files of render nodes has a page of memory, a context and a job
 * for a moment. A handler that cannot be read is lost, after a warning. 0 or -ENOMEM.
 */
int trap_handlers_read(const struct trap_request *request, struct kfd_state *state);

#endif
