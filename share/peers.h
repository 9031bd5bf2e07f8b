/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_PEERS_H
#define SHARE_PEERS_H

#include "share/survey.h"

/*
 * How many references the mappings of a KFD BO on other GPUs hold; @holder is on the buffer's own device. *vram, of the
 * buffer: -1 to begin with.
 */
int64_t peers_references(struct survey *survey, const struct buffer *buffer, const struct holder *holder, int *vram);

#endif
