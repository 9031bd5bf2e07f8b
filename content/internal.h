/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of the engine, a dump or a restore of all its GPUs; and for each GPU lanes, each a thread that takes the next
 * window of the pages file, copies, checksums and transfers it, while its other windows are with the GPU.
 *
 * The engine's words:
 *   pages file  the data of one GPU's BOs, behind a length prefix
 *   block       4 KiB of a pages file: all zeros, or data
 *   extent      neighbouring blocks of a window that are alike
 *   window      an aligned range of a pages file, which is processed as a whole
 *   slot        a lane's staging memory for one window
 *   piece       the range of one BO within a window or an extent
 *   part        the share of a slot that one DMA ring copies
 */
#ifndef CONTENT_INTERNAL_H
#define CONTENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "content/content.h"
#include "content/copier.h"
#include "content/layout.h"
#include "content/pagesio.h"
#include "amdgpu_plugin_util.h"

/* ---- the run ---- */

struct content_run {
	bool dump;
	size_t nr_gpus;
	unsigned int fence_timeout_ms;
	atomic_int err;			/* the first cause; all threads stop when it is set */
	char error_text[FAIL_TEXT_MAX]; /* of that one; "": the caller has cancelled the run */
	pthread_mutex_t lock;
	pthread_cond_t ended; /* the lanes of a GPU have ended */
};

/* Keeps the first error of a run with the text of the calling thread, and makes all its threads stop. Returns @err. */
int content_run_fail(struct content_run *run, int err);

static inline bool content_run_has_failed(struct content_run *run)
{
	return atomic_load(&run->err) != 0;
}

/* ---- a GPU ---- */

#define MAX_LANES 3

struct lane {
	struct lanes *lanes;
	uint8_t *staging; /* nr_slots windows */
	uint8_t *maps;	  /* nr_slots times one byte for each block, see content/pagesio.h */
	uint64_t window[LAYOUT_MAX_SLOTS]; /* in each slot */
	struct copier copier;
	struct pagesio io;
	pthread_t thread;
};

/* What is left of a BO. */
struct bo_rest {
	uint64_t bytes;
	uint32_t crc;
};

struct lanes {
	struct content_run *run;
	struct content_gpu *gpu;
	char who[48]; /* in messages */
	struct layout layout;
	uint8_t *staging;
	size_t staging_bytes;
	unsigned int nr_lanes, nr_slots; /* of a lane */
	struct lane lane[MAX_LANES];
	bool is_waiting; /* the caller has nothing for the GPU yet */
	bool has_thread;
	_Atomic uint64_t next_window;
	pthread_mutex_t bo_lock; /* of the mappings of BOs, and of rest */
	struct bo_rest *rest;

	/* guarded by run->lock */
	uint64_t bytes_done, zero_bytes;
	double began_at, ended_at; /* 0: not yet */
	bool direct;
};

/*
 * @max_bytes: cap of the staging memory, 0 for the default. 0 or -errno after content_run_fail(); lanes_done() in any
 * case.
 */
int lanes_init(struct lanes *lanes, struct content_run *run, struct content_gpu *gpu, uint64_t max_bytes);
void lanes_done(struct lanes *lanes);

/* Starts the lanes; run->ended tells when they have ended. 0 or -errno after content_run_fail(): there is none. */
int lanes_start(struct lanes *lanes);
/* Waits for them, if there are. */
void lanes_join(struct lanes *lanes);

#endif
