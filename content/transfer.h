/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the slots of a GPU and its pages file. Errors are those of the run, which has failed then. */
#ifndef CONTENT_TRANSFER_H
#define CONTENT_TRANSFER_H

#include "content/pipeline.h"

/* Opens the file, and with transfer_close() ends it; @err: of what came between. */
int transfer_open(struct pipeline *pipeline);
void transfer_close(struct pipeline *pipeline, int err);

/* Window @w, whose slot is full in a dump and free in a restore. */
int transfer_window(struct pipeline *pipeline, struct pagesio *io, uint64_t w);

/* What the I/O thread does but for the end: opens the file and transfers all windows. */
int transfer_all(struct pipeline *pipeline);

#endif
