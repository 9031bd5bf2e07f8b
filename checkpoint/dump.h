/* SPDX-License-Identifier: GPL-2.0-only */
/* A dump: every KFD process of the tree is paused, then saved file by file, then let go. */
#ifndef CHECKPOINT_DUMP_H
#define CHECKPOINT_DUMP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "host/host.h"

struct dump;

/* @settings is borrowed for the life of the dump. NULL when out of memory. */
struct dump *dump_new(const struct settings *settings);

/*
 * Lets all paused processes run and frees everything. @succeeded: what criu says of its dump. Accepts NULL. When a
 * process cannot run, that is an error line, and criu fails at its end if the process still lives.
 */
void dump_free(struct dump *dump, bool succeeded);

/*
 * Pauses all KFD processes among the tasks that the calling thread traces. The first
 * call does it, later ones return its result.
 */
int dump_pause(struct dump *dump);

/* Whether a task has state on GPUs, whether or not criu will find a file or mapping of ours in it. */
bool dump_has_state(pid_t pid);

/* Saves the file behind @fd, /dev/kfd or a render node, under criu's file id. 0, or -errno after an error line. */
int dump_file(struct dump *dump, int fd, const struct stat *st, int id);

/*
 * A file that is no device of ours, where processes with a GPU are dumped: 1 for a dma-buf that was saved under criu's
 * file id, 0 for one that is not ours either, -errno after an error line for one that GPU processes have and that cannot be saved.
 */
int dump_foreign_file(struct dump *dump, int fd, int id);

#endif
