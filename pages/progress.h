/* SPDX-License-Identifier: GPL-2.0-only */
/* Progress of a copy of contents, for people and programs (KFD_PROGRESS). */
#ifndef PAGES_PROGRESS_H
#define PAGES_PROGRESS_H

#include <stddef.h>

#include "content/content.h"

struct progress {
	const char *stage; /* "dump" or "restore" */
	int fd;		   /* -1: none */
};

/*
 * Opens the file, FIFO or device at @path, "" for none; /dev/stdout and /dev/stderr are
 * those of the calling process. Never fails and never waits: where the file cannot be opened
 * at once, no progress is shown, with a warning.
 */
struct progress progress_open(const char *path, const char *stage);
void progress_close(struct progress *progress);

/*
 * Writes one line for each GPU, all at once:
 *     STAGE gpu=ID done=BYTES total=BYTES rate=MBPS left=SECONDS
 * with "left=?" until something is copied. As content_options.on_progress, @arg is a
 * struct progress.
 */
void progress_report(void *arg, const struct content_gpu *gpus, size_t nr_gpus);

#endif
