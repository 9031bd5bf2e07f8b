/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of the engine, a dump or a restore of all its GPUs, and the pipeline of each: slots of staging memory between a
 * thread that copies and checksums and one or two that read or write the pages file; or one thread that does it all.
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
#ifndef CONTENT_PIPELINE_H
#define CONTENT_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "content/content.h"
#include "content/copier.h"
#include "content/layout.h"
#include "content/pagesio.h"
#include "amdgpu_plugin_util.h"

/* ---- the run ---- */

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

/* ---- a GPU (content/pipeline.c) ---- */

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

	/* of the I/O thread, as long as it runs */
	struct pagesio io;
	int io_err;
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

/* ---- slots, as they go from one thread of a GPU to another (content/slots.c) ---- */

unsigned int slot_of(const struct pipeline *pipeline, uint64_t w);
/* Of window @w: its memory, and one byte for each block of it (content/pagesio.h). */
uint8_t *slot_memory(const struct pipeline *pipeline, uint64_t w);
uint8_t *slot_map(const struct pipeline *pipeline, uint64_t w);

/* Whether window @w may come into its slot, or is there; with @wait, when it is so or the run has failed. */
bool slot_is_free(struct pipeline *pipeline, uint64_t w, bool wait);
bool slot_is_full(struct pipeline *pipeline, uint64_t w, bool wait);

/* The copy thread, or an I/O thread, is done with window @w. */
void slot_copied(struct pipeline *pipeline, uint64_t w);
void slot_transferred(struct pipeline *pipeline, uint64_t w);

/* Whether the run of a pipeline, which is @arg, has failed. */
bool pipeline_is_stopped(void *arg);

struct place {
	char text[64];
};

/* What an offset of the file means to the user. */
struct place pipeline_place(const struct pipeline *pipeline, uint64_t file_off);

/* ---- between the slots and the pages file (content/transfer.c); an error has failed the run already ---- */

/* Opens the file, and with transfer_close() ends it; @err: of what came between. */
int transfer_open(struct pipeline *pipeline);
void transfer_close(struct pipeline *pipeline, int err);

/* Window @w, whose slot is full in a dump and free in a restore. */
int transfer_window(struct pipeline *pipeline, struct pagesio *io, uint64_t w);

/* What the I/O thread does but for the end: opens the file and transfers all windows. */
int transfer_all(struct pipeline *pipeline);

#endif
