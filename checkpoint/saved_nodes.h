/* SPDX-License-Identifier: GPL-2.0-only */
/* The nodes of a dumped process as they go into its images: the machine's CPUs, and the GPUs that it has. */
#ifndef CHECKPOINT_SAVED_NODES_H
#define CHECKPOINT_SAVED_NODES_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kernel.h"

/*
 * Of a process of the KFD whose state was taken, by its user gpu ids. @machine: all nodes, by actual ids. *ret is the
 * caller's. 0, or -errno after an error line.
 */
int saved_nodes_of_kfd(const struct topology *machine, pid_t pid, const struct kfd_state *state, struct topology **ret);

/* Of a task that has opened render nodes and no /dev/kfd: their GPUs, by actual ids. Likewise. */
int saved_nodes_of_files(const struct topology *machine, const struct task_files *files, pid_t pid,
			 struct topology **ret);

/* Whether all GPUs of which the task has opened files are among @nodes. */
bool saved_nodes_have(const struct topology *nodes, const struct task_files *files, pid_t pid);

/* The place of a file's GPU in @nodes, or -EOPNOTSUPP after an error line. */
int saved_nodes_find(const struct topology *nodes, const struct task_file *file);

/* Gives a state the GPUs of @nodes, which the KFD has not told of. 0 or -ENOMEM. */
int saved_nodes_add_devices(const struct topology *machine, const struct topology *nodes, struct kfd_state *state);

#endif
