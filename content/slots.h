/* SPDX-License-Identifier: GPL-2.0-only */
/* What the threads of a GPU have in common: its slots, and which window is in which. */
#ifndef CONTENT_SLOTS_H
#define CONTENT_SLOTS_H

#include "content/pipeline.h"

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

#endif
