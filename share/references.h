/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_REFERENCES_H
#define SHARE_REFERENCES_H

#include "share/survey.h"

struct references;

/* Reads which dma-bufs are open, and adds what is held by nothing else to the holders, which are sorted by buffer. */
int references_read(struct survey *survey);
void references_free(struct references *references);

/* Whether a task has the dma-buf open. @references may be NULL. */
bool references_of_tasks(const struct references *references, uint64_t inode);

/* Whether all references to a buffer's dma-buf are those of the dump. */
int references_check(struct survey *survey, const struct buffer *buffer);

#endif
