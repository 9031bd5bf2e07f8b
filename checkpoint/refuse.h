/* SPDX-License-Identifier: GPL-2.0-only */
/* What a dump refuses, since it could not be restored. All functions: 0, or -errno after an error line. */
#ifndef CHECKPOINT_REFUSE_H
#define CHECKPOINT_REFUSE_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kernel.h"

/*
 * A paused KFD process, before its state is taken. @files: of all tasks. @is_forced: takes even what this
 * kernel is known not to restore.
 */
int refuse_process(pid_t pid, const struct kfd_state *state, const struct task_files *files,
		   const struct topology *machine, bool is_forced);

/* A process two of whose files are of different KFD contexts. */
int refuse_context(pid_t pid);

/*
 * A file of a render node in a task without /dev/kfd, unless it holds nothing; @is_saved: nothing but what is saved of
 * it.
 */
int refuse_used_file(const struct task_file *file, bool is_saved);

/* A file of a device of ours that criu has found and that no task has open. */
int refuse_file_under_way(const struct stat *st);

/*
 * A task without /dev/kfd that has device files mapped, or queues and memory left. @is_saved: its state is that of its
 * render nodes, and mappings of them come with it. 0, or -errno after an error line.
 */
int refuse_mappings(pid_t pid, const struct topology *machine, bool is_saved);

/* A dump on top of earlier images. */
int refuse_incremental(void);

/* A dump whose memory is fetched later, where criu's command line says so. */
int refuse_lazy_dump(void);

#endif
