/* SPDX-License-Identifier: GPL-2.0-only */
/* What the hooks use of checkpoint/. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "host/host.h"
#include "image/image.h"
#include "match/match.h"

/* ---- a dump: every KFD process of the tree is paused, then saved file by file, then let go ---- */

struct dump;

/* @settings is borrowed for the life of the dump. NULL when out of memory. */
struct dump *dump_new(const struct settings *settings);

/* -ENODATA after fail(): criu thinks that all is saved, and has not asked for all files. Accepts NULL. */
int dump_check_complete(const struct dump *dump);

/*
 * Lets all paused processes run and frees everything. @succeeded: what criu says of its dump. Accepts NULL. When a
 * process cannot run, that is an error line, and criu fails at its end if the process still lives. Whether criu must not
 * go on to end the tasks, after fail(): it has not asked for all their files.
 */
bool dump_free(struct dump *dump, bool succeeded);

/*
 * Pauses all KFD processes among the tasks that the calling thread traces. Later calls return the result of the first.
 */
int dump_pause(struct dump *dump);

/*
 * Whether the tasks that the calling thread traces would be dumped: does all that comes before the first byte is written,
 * and lets them go. 0, with the seconds for which queues were stopped, or -errno after fail().
 */
int dump_try(const struct settings *settings, double *ret_seconds);

/* Before criu stops a task: one that is suspended stands still by SIGSTOP from now on, and runs code of criu. */
void dump_stop_suspended(struct dump *dump, pid_t pid);

/* Whether a task has state on GPUs, whether or not criu will find a file or mapping of ours in it. */
bool dump_has_state(pid_t pid);

/* When all tasks are stopped, for each, and before criu writes: dump_pause(), unless no task has to do with AMD GPUs. */
int dump_pause_with(struct dump *dump, pid_t pid);

/* Saves the file behind @fd, /dev/kfd or a render node, under criu's file id. 0, or -errno after fail(). */
int dump_file(struct dump *dump, int fd, const struct stat *st, int id);

/*
 * A file that is no device of ours, where processes with a GPU are dumped: 1 for a dma-buf that was saved under criu's
 * file id, 0 for one that is not ours either, -errno after fail() for one that GPU processes have and that cannot be saved.
 */
int dump_foreign_file(struct dump *dump, int fd, int id);

/* ---- what a restore and "amdgpu-checkpoint match" decide alike ---- */

/* What the settings say about the choice of GPUs. Borrows the pairs of @settings. */
struct match_options precheck_options(const struct settings *settings);

/* Whether the process may have a GPU of this id in place of @user_id: 0, or -EOPNOTSUPP after fail(). */
int precheck_ids(const struct settings *settings, const struct gpu_process *image, uint32_t user_id, uint32_t actual_id);

/* ---- a restore: made in criu's main process, used there and, after the fork, in each task ---- */

struct restore;

/*
 * In criu's main process: reads the machine's topology, since a restored task may see no sysfs. @certain: the images
 * are known to be of a GPU process. @settings is borrowed. NULL on failure, after fail() unless memory is short.
 */
struct restore *restore_new(const struct settings *settings, bool certain);
/* Accepts NULL. Ends what is being copied. */
void restore_free(struct restore *restore);

/* In criu's main process, when tasks begin to open their files, or not at all: their buffers are filled meanwhile. */
void restore_forked(struct restore *restore);

/*
 * In a task: restores the file with criu's file id. An fd for criu; -ENOENT without a message: no image has this id;
 * -errno.
 */
int restore_file(struct restore *restore, int id);

/*
 * In a task: from where the mapping that was at @start with file offset @offset has to be mapped now. *ret_fd is an fd
 * that criu takes. 0; -ENOENT when the mapping is not ours; -errno.
 */
int restore_vma(struct restore *restore, const char *path, uint64_t start, uint64_t offset, uint64_t *ret_offset,
		int *ret_fd);

/*
 * In the main process: lets a process run its queues, when all buffer data are there. 0; -ESRCH when it has none;
 * -errno.
 */
int restore_resume(struct restore *restore, pid_t pid);

#endif
