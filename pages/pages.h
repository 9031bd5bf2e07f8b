/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages files of a KFD process: which BO is in which file, and the engine's run over all its GPUs. */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include <stdint.h>

#include "content/content.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "host/host.h"
#include "pages/worker.h"

/* A process whose contents are saved. */
struct pages_process {
	int pid;
	int id;			 /* of its image */
	struct kfd_state *state; /* the dma-bufs of its BOs are open */
	const uint32_t *minors;	 /* this machine's render minors, one for each of state->devices */
};

/*
 * Saves the contents of all BOs of all processes, into one file for each process and GPU: those of different GPUs at the
 * same time. Sets the states' checksums. @tally: as in content.h. 0 or -errno.
 */
int pages_dump(const struct pages_process *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally);

/*
 * Fills the BOs of @state, of one process, and verifies the checksums that are known. If @worker (NULL: none) takes the
 * job, it does the work, and *ret_token is for worker_wait(); otherwise the work is done on return, and *ret_token is
 * -1.
 */
int pages_restore(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
		  struct worker *worker, struct content_tally *tally, int *ret_token);

/* A line about all of a dump or restore. @what was done with how many processes, and what has lasted @seconds. */
void pages_log_tally(const struct content_tally *tally, const char *what, size_t nr_processes, const char *lasting,
		     double seconds);

#endif
