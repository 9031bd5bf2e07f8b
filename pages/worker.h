/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contents restored in criu's main process, for all tasks: one thread and one pipeline for each GPU, whoever owns the
 * buffers. So memory does not grow with the number of tasks, and tasks on one GPU take turns.
 *
 * For criu 4.2 and later; with KFD_PARALLEL_RESTORE=0, an older criu or a stream each task copies by itself. A task
 * hands its GPUs over with all files open and goes on with the rest of its restore. Who waits for the verdict, and when,
 * is the caller's.
 */
#ifndef PAGES_WORKER_H
#define PAGES_WORKER_H

#include "content/content.h"
#include "host/host.h"

struct worker;

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

/* In a task, or for it in the main process: waits for the contents and logs what the worker says. 0 or -errno. */
int worker_wait(int token);

#endif
