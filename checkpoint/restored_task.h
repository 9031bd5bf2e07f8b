/* SPDX-License-Identifier: GPL-2.0-only */
/* A task that is restored: its GPUs, the state on them, its device files and their mappings. */
#ifndef CHECKPOINT_RESTORED_TASK_H
#define CHECKPOINT_RESTORED_TASK_H

#include "checkpoint/shared.h"
#include "host/host.h"
#include "pages/pages.h"
#include "share/share.h"

/* What criu's main process has read and made before it has tasks. */
struct restore_setup {
	const struct settings *settings;
	struct topology *machine;
	int machine_error; /* why there is no topology */
	struct kfd_rules rules;
	struct driver_release driver;
	struct criu_traits traits;
	struct mounted *mounted;
	struct shared *shared;
	struct share_table *buffers; /* shared by all tasks as well */
	struct worker *worker;	     /* NULL: each task copies its own contents */
	bool waits_late;	     /* criu's main process waits for what the worker copies, and no task */
};

struct restored_task;

/* Made by the main process; each task has a copy of its own. Borrows @setup. NULL when memory is short. */
struct restored_task *restored_task_new(const struct restore_setup *setup);
/* Accepts NULL. */
void restored_task_free(struct restored_task *task);

/* As restore_file() and restore_vma() in checkpoint.h. */
int restored_task_file(struct restored_task *task, int id);
int restored_task_vma(struct restored_task *task, const char *path, uint64_t start, uint64_t offset,
		      uint64_t *ret_offset, int *ret_fd);

#endif
