/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_STRANGERS_H
#define SHARE_STRANGERS_H

#include "share/survey.h"

/* What processes have that are not dumped. */
struct strangers;

/* @dmabufs: the device of dma-bufs. strangers_free() in any case. */
int strangers_read(const struct survey *survey, dev_t dmabufs, struct strangers **ret);
void strangers_free(struct strangers *strangers);

/* A process that has the buffer, or 0. @far: also on GPUs that it is not of, where handles tell its size only. */
pid_t strangers_find(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
		     bool far);

/* A process that uses the buffer's GPU, @far: any GPU, by the KFD, where nothing tells what it has there; or 0. */
pid_t strangers_unclear(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
			bool far);

#endif
