/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages files of a KFD process: which BO is in which file, and who copies: the task, or the worker. */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include <stdint.h>

#include "content/content.h"
#include "host/host.h"
#include "image/image.h"
#include "kernel/kernel.h"

struct worker;

/*
 * Saves the contents of all BOs of all processes, whose dma-bufs are open, into one file for each process and GPU: those of
 * different GPUs at the same time. Sets the states' checksums. @tally: as in content.h. 0 or -errno.
 */
int pages_dump(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally);

/* How many bytes pages_dump() would write for a process, at most: zeros take no room on a disk or in memory. */
uint64_t pages_bytes(const struct gpu_process *process);

/*
 * Fills the BOs of a process and verifies the checksums that are known. If @worker (NULL: none) takes the job, it does the
 * work, and *ret_token is for worker_wait(); otherwise the work is done on return, and *ret_token is -1.
 */
int pages_restore(const struct gpu_process *process, const struct settings *settings, struct worker *worker,
		  struct content_tally *tally, int *ret_token);

/* Fills the BOs of all processes at the same time, from the files that pages_dump() has written. 0 or -errno. */
int pages_fill(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally);

/* A line about all of a dump or restore. @what was done with how many processes, and what has lasted @seconds. */
void pages_log_tally(const struct content_tally *tally, const char *what, size_t nr_processes, const char *lasting,
		     double seconds);

/* ---- the worker ---- */

/*
 * Contents restored in criu's main process, for all tasks, whoever owns the buffers: tasks on one GPU take turns, so that
 * memory does not grow with their number.
 *
 * For criu 4.2 and later; with KFD_PARALLEL_RESTORE=0, an older criu or a stream each task copies by itself. A task
 * hands its GPUs over with all files open and goes on with the rest of its restore. Who waits for the verdict, and when,
 * is the caller's.
 */

/*
 * In criu's main process, before it forks tasks. The worker does not run yet. @settings
 * and @tally are borrowed; @nr_gpus of the machine share settings->max_buffer_size_bytes.
 * NULL after a failure.
 */
struct worker *worker_new(const struct settings *settings, unsigned int nr_gpus, struct content_tally *tally);

/* Main process, when no more tasks will be forked. When it cannot start, tasks copy on their own, with a warning. */
void worker_start(struct worker *worker);

/*
 * Main process: ends all threads, contents that are being copied included, and frees
 * everything. NULL is fine.
 */
void worker_free(struct worker *worker);

/*
 * Main process: waits until all contents handed over so far are copied. 0, or -errno of
 * the first that failed; its text is in the task's verdict.
 */
int worker_wait_all(struct worker *worker);

/*
 * In a task: sends copies of all fds of @gpus. The caller keeps its own and may close them at once. Returns a token >=
 * 0 for worker_wait(). -errno when the worker does not run or does not take it: the caller copies
 * by itself.
 */
int worker_submit(struct worker *worker, const struct content_gpu *gpus, size_t nr_gpus);

/* In a task, or for it in the main process: waits for the contents and logs what the worker says. 0 or -errno; -ECANCELED
 * without words where another process has failed, which says why. */
int worker_wait(int token);

#endif
