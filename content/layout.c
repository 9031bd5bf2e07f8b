// SPDX-License-Identifier: GPL-2.0-only
/*
 * Layout of a pages file, and how large the windows and their staging memory are. Pure arithmetic.
 *
 * Many small slots (16 of 8 MiB at most) rather than a few large ones: where the GPU and the disk are equally fast,
 * each slot makes up for moments in which one of them is slower.
 */
#include "content/layout.h"

#include <inttypes.h>

#define STAGING_BYTES_MAX (128u << 20)
/* With n windows, the first copy and the last transfer, which nothing overlaps with, cost about 2/n of the time. */
#define WINDOWS_WANTED	  128
/* Less is not worth a submission. */
#define SLOT_BYTES_MIN	  (256u << 10)
/* A slot that has fewer windows is not worth its memory. */
#define WINDOWS_OF_A_SLOT 8
/* Fewer slots rather than smaller ones, down to this: for each side one at work and one on its way. */
#define SLOTS_WANTED	  4

/* A slot of at most @cap bytes: whole huge pages, or what suits less data or less memory. */
static uint64_t slot_size(uint64_t file_bytes, uint64_t cap)
{
	uint64_t bytes = file_bytes / WINDOWS_WANTED;

	if (bytes < SLOT_BYTES_MIN)
		bytes = SLOT_BYTES_MIN;
	if (bytes > cap)
		bytes = cap;
	if (bytes > file_bytes)
		return round_up(file_bytes, LAYOUT_BLOCK_BYTES);
	return bytes - bytes % (bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : LAYOUT_BLOCK_BYTES);
}

static void size_slots(struct layout *layout, uint64_t max_bytes)
{
	uint64_t staging = !max_bytes || max_bytes > STAGING_BYTES_MAX ? STAGING_BYTES_MAX : max_bytes;
	uint64_t nr = staging / HUGE_PAGE_BYTES, cap, enough;

	nr = nr > LAYOUT_MAX_SLOTS ? LAYOUT_MAX_SLOTS : nr < SLOTS_WANTED ? SLOTS_WANTED : nr;
	cap = staging / nr;
	if (cap < LAYOUT_BLOCK_BYTES) {
		cap = LAYOUT_BLOCK_BYTES;
		nr = staging / LAYOUT_BLOCK_BYTES ? staging / LAYOUT_BLOCK_BYTES : 1;
	}
	layout->slot_bytes = slot_size(layout->file_bytes, cap);
	layout->nr_windows = (layout->file_bytes - 1) / layout->slot_bytes + 1;
	enough = layout->nr_windows / WINDOWS_OF_A_SLOT;
	if (enough < SLOTS_WANTED)
		enough = layout->nr_windows < SLOTS_WANTED ? layout->nr_windows : SLOTS_WANTED;
	layout->nr_slots = (unsigned int)(nr < enough ? nr : enough);
}

int content_starts(const struct content_bo *bos, size_t nr_bos, uint64_t **ret)
{
	_cleanup_free_ uint64_t *starts = calloc(nr_bos + 1, sizeof(*starts));
	uint64_t pos = LENGTH_PREFIX_BYTES;

	if (!starts)
		return -ENOMEM;
	for (size_t i = 0; i < nr_bos; i++) {
		starts[i] = pos;
		if (!bos[i].size)
			return -EINVAL;
		if (add_overflows(pos, bos[i].size, &pos) || pos > CONTENT_MAX_BYTES)
			return -EOVERFLOW;
	}
	starts[nr_bos] = pos;
	*ret = steal_ptr(starts);
	return 0;
}

int content_check_size(uint64_t size, uint64_t file_bytes)
{
	if (size < file_bytes)
		return fail(-EBADMSG, "is truncated: %" PRIu64 " bytes, and needs %" PRIu64, size, file_bytes);
	if (size > file_bytes)
		return fail(-EBADMSG, "has %" PRIu64 " bytes behind its buffer data", size - file_bytes);
	return 0;
}

int content_check_prefix(const uint8_t *prefix, uint64_t file_bytes)
{
	uint64_t bytes = length_prefix_get(prefix), expected = file_bytes - LENGTH_PREFIX_BYTES;

	if (bytes == expected)
		return 0;
	return fail(-EBADMSG, "announces %" PRIu64 " bytes, the buffers have %" PRIu64, bytes, expected);
}

int content_check_crc(const struct content_bo *bo, uint32_t crc)
{
	if (!bo->has_crc32c || bo->crc32c == crc)
		return 0;
	return fail(-EBADMSG, "is damaged: CRC-32C of its %" PRIu64 " bytes is %08x, %08x was saved", bo->size, crc, bo->crc32c);
}

size_t content_find_range(const struct content_range *ranges, size_t nr, uint64_t at)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].to <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int layout_init(struct layout *layout, const struct content_bo *bos, size_t nr_bos, uint64_t max_bytes)
{
	int err;

	*layout = (struct layout){ .nr_bos = nr_bos };
	err = content_starts(bos, nr_bos, &layout->starts);
	if (err)
		return err;
	layout->file_bytes = layout->starts[nr_bos];
	size_slots(layout, max_bytes);
	return 0;
}

void layout_done(struct layout *layout)
{
	free(layout->starts);
	layout->starts = NULL;
}

uint64_t layout_window(const struct layout *layout, uint64_t w, uint64_t *ret_len)
{
	uint64_t off = w * layout->slot_bytes;
	uint64_t rest = layout->file_bytes - off;

	*ret_len = rest < layout->slot_bytes ? rest : layout->slot_bytes;
	return off;
}

static bool set_piece(const struct layout *layout, size_t bo, uint64_t from, uint64_t end, struct piece *piece)
{
	uint64_t bo_end;

	if (end > layout->file_bytes)
		end = layout->file_bytes;
	if (bo >= layout->nr_bos || from >= end)
		return false;
	bo_end = layout->starts[bo + 1];
	piece->bo = bo;
	piece->bo_off = from - layout->starts[bo];
	piece->file_off = from;
	piece->len = (bo_end < end ? bo_end : end) - from;
	return true;
}

bool layout_piece(const struct layout *layout, uint64_t from, uint64_t end, struct piece *ret)
{
	size_t low = 0, high = layout->nr_bos;

	if (from < LENGTH_PREFIX_BYTES)
		from = LENGTH_PREFIX_BYTES;
	/* The last BO that starts at or before it, by bisection. */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (layout->starts[middle] <= from)
			low = middle;
		else
			high = middle;
	}
	return set_piece(layout, low, from, end, ret);
}

bool layout_next_piece(const struct layout *layout, uint64_t end, struct piece *piece)
{
	return set_piece(layout, piece->bo + 1, piece->file_off + piece->len, end, piece);
}
