/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pipeline of one GPU: slots of staging memory between a thread that copies (and checksums) and one
 * or two that read or write the pages file; or one thread that does it all.
 */
#ifndef CONTENT_PIPELINE_H
#define CONTENT_PIPELINE_H

#include "content/content.h"
#include "content/copier.h"
#include "content/layout.h"
#include "content/pagesio.h"
#include "content/run.h"

struct pipeline {
	struct content_run *run;
	struct content_gpu *gpu;
	char who[48]; /* in messages */
	struct layout layout;
	uint8_t *staging;
	size_t staging_bytes;
	uint8_t *maps; /* nr_slots times one byte for each block, see content/pagesio.h */
	pthread_t thread; /* that copies, and starts those that transfer */
	bool has_thread;  /* else the caller's thread does it all */
	bool alone;	  /* one thread does it all */

	/* guarded by run->lock */
	pthread_cond_t *changed; /* of the run, RUN_NR_WAITERS */
	uint64_t nr_produced;	 /* windows below this have their contents in staging memory */
	uint64_t nr_consumed;	 /* windows below this have left it again */
	bool is_transferred[LAYOUT_MAX_SLOTS]; /* the window in the slot, and not one before it */
	uint64_t bytes_done, zero_bytes;
	double began_at, ended_at; /* 0: not yet */
	bool direct;

	/* of the copy thread */
	struct copier copier;
	size_t nr_mapped, nr_released; /* BOs below; those between are mapped */
	uint32_t crc;		       /* of the current BO as far as it is done */
	uint64_t window_zeros;

	/* of the I/O thread */
	struct pagesio io;
	pthread_t second_thread; /* another one, which it has started */
	bool has_second;

	/* of the second I/O thread, while it runs */
	struct pagesio second_io;
	int second_err;
};

/*
 * @changed: of this GPU in the run. @max_bytes: cap of the staging memory, 0 for the default. 0 or
 * -errno after content_run_fail(); pipeline_done() has to be called in either case.
 */
int pipeline_init(struct pipeline *pipeline, struct content_run *run, pthread_cond_t *changed, struct content_gpu *gpu,
		  uint64_t max_bytes);
void pipeline_done(struct pipeline *pipeline);

/* Starts the threads. run->ended tells when they have ended. 0 or -errno, silently: there is none. */
int pipeline_start(struct pipeline *pipeline);
/* Waits for them. */
void pipeline_join(struct pipeline *pipeline);
/* Instead of both: does it all in the caller's thread, and calls run->between_windows. */
void pipeline_run_alone(struct pipeline *pipeline);

#endif
