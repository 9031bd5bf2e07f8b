/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One run of the engine, a dump or a restore of all its GPUs: what their threads share,
 * and how the first failure ends it.
 *
 * The engine's words:
 *   pages file  the contents of one GPU's BOs, behind a length prefix
 *   block       4 KiB of a pages file: all zeros, or data
 *   extent      neighbouring blocks of a window that are alike
 *   window      an aligned range of a pages file, which is processed as a whole
 *   slot        staging memory for one window; window w has slot w % nr_slots
 *   piece       the range of one BO within a window or an extent
 *   part        the share of a slot that one DMA ring copies
 */
#ifndef CONTENT_RUN_H
#define CONTENT_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "amdgpu_plugin_util.h"

/* The threads of a GPU wait each for itself: the one that copies, and those that transfer even and odd windows. */
enum { RUN_COPIES, RUN_TRANSFERS_EVEN, RUN_TRANSFERS_ODD, RUN_NR_WAITERS };

struct content_run {
	bool dump;
	unsigned int fence_timeout_ms;
	atomic_int err; /* the first cause; all threads stop when it is set */
	char error_text[FAIL_TEXT_MAX]; /* of that one; "": the caller has cancelled the run */
	pthread_mutex_t lock;
	pthread_cond_t ended; /* the threads of a GPU have ended */
	/* RUN_NR_WAITERS for each GPU: a window has moved on, its threads may begin, or the run has failed. */
	pthread_cond_t *changed;
	/* Without threads: called between windows. */
	void (*between_windows)(void *arg);
	void *between_arg;
	size_t nr_gpus;
};

/* 0, or -ENOMEM, silently, with nothing left to release. */
int content_run_init(struct content_run *run, bool dump, size_t nr_gpus);
void content_run_done(struct content_run *run);

/* Keeps the first error of a run with the text of the calling thread, and makes all its threads stop. Returns @err. */
int content_run_fail(struct content_run *run, int err);

static inline bool content_run_has_failed(struct content_run *run)
{
	return atomic_load(&run->err) != 0;
}

#endif
