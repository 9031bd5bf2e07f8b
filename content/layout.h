/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the bytes of a GPU's BOs lie in its pages file, and the windows in which the file is processed.
 *
 * The file begins with 8 bytes of length, so BOs are not aligned in it. Windows are aligned ranges of the file, not of
 * a BO: a byte has the same offset within a page of staging memory and of the file, which direct I/O needs.
 */
#ifndef CONTENT_LAYOUT_H
#define CONTENT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "amdgpu_plugin_util.h"

#define LAYOUT_BLOCK_BYTES 4096u
#define LAYOUT_MAX_SLOTS   16

struct layout {
	size_t nr_bos;
	uint64_t *starts;    /* of each BO in the file, and the end of the file */
	uint64_t file_bytes; /* prefix and buffer data */
	uint64_t slot_bytes; /* a window, and the staging memory for one; whole blocks */
	uint64_t nr_windows;
	unsigned int nr_slots;
};

/* The range of one BO that lies within a range of the file. */
struct piece {
	size_t bo; /* index in bos */
	uint64_t bo_off;
	uint64_t file_off;
	uint64_t len;
};

/*
 * @max_bytes caps nr_slots x slot_bytes, one block at least; 0 = the default, and the most, of 128 MiB.
 * 0, -EINVAL (an empty BO), -EOVERFLOW (sizes that cannot be added) or -ENOMEM, no message.
 */
int layout_init(struct layout *layout, const struct content_bo *bos, size_t nr_bos, uint64_t max_bytes);
void layout_done(struct layout *layout);

static inline uint64_t layout_content_bytes(const struct layout *layout)
{
	return layout->file_bytes - LENGTH_PREFIX_BYTES;
}

/* File offset and length of window @w. */
uint64_t layout_window(const struct layout *layout, uint64_t w, uint64_t *ret_len);

/* The first piece in [from, end) of the file; false when there is none. */
bool layout_piece(const struct layout *layout, uint64_t from, uint64_t end, struct piece *ret);
/* The piece that follows *piece, up to @end. */
bool layout_next_piece(const struct layout *layout, uint64_t end, struct piece *piece);

#define layout_for_each_piece(layout, from, end, piece)                          \
	for (bool _more = layout_piece((layout), (from), (end), (piece)); _more; \
	     _more = layout_next_piece((layout), (end), (piece)))

#endif
