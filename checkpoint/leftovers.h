/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Temporary cgroups in which restored tasks hide GPUs from themselves, known to criu's main process: it removes those
 * that are left when the restore ends, such as those of tasks that were killed.
 */
#ifndef CHECKPOINT_LEFTOVERS_H
#define CHECKPOINT_LEFTOVERS_H

#include "kernel/kernel.h"

struct leftovers;

/* In criu's main process, before it has tasks. NULL when memory is short. */
struct leftovers *leftovers_new(void);
/* In criu's main process, when its tasks run or are dead: removes what is left. Accepts NULL. */
void leftovers_free(struct leftovers *leftovers);

/* For hide_begin() in any task; borrowed from @leftovers. */
const struct hide_keeper *leftovers_keeper(struct leftovers *leftovers);

#endif
