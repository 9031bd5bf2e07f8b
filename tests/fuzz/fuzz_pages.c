// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages files, as files and as streams: accepted when, and only when, the length before
 * them, the bytes that are there and the BOs agree; and then what is read is what is there.
 *
 * Input: one byte of flags, one of the staging memory, one of the number of BOs, two for the
 * size of each; the rest is the file.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "content/layout.h"
#include "content/pagesio.h"
#include "fuzz.h"

#define MAX_BOS 8

struct input {
	bool streaming;
	uint64_t max_bytes;
	struct content_bo bos[MAX_BOS];
	size_t nr_bos;
	uint64_t bytes; /* of all BOs */
	const uint8_t *file;
	size_t size;
};

static bool parse(const uint8_t *data, size_t size, struct input *in)
{
	size_t i;

	if (size < 3)
		return false;
	*in = (struct input){ .streaming = data[0] & 1, .max_bytes = 4096u * data[1], .nr_bos = data[2] % MAX_BOS };
	data += 3;
	size -= 3;
	if (size < 2 * in->nr_bos)
		return false;
	for (i = 0; i < in->nr_bos; i++) {
		in->bos[i].size = data[2 * i] | (uint64_t)data[2 * i + 1] << 8;
		in->bytes += in->bos[i].size;
	}
	in->file = data + 2 * in->nr_bos;
	in->size = size - 2 * in->nr_bos;
	return in->size <= FUZZ_PIPE_MAX;
}

static bool is_right(const struct input *in)
{
	uint64_t prefix = 0;
	int i;

	if (in->size != LENGTH_PREFIX_BYTES + in->bytes)
		return false;
	for (i = 0; i < LENGTH_PREFIX_BYTES; i++)
		prefix |= (uint64_t)in->file[i] << 8 * i;
	return prefix == in->bytes;
}

/* A window that was read, but for holes, which are left alone and read as zeros. */
static void check_window(const struct input *in, uint64_t off, const uint8_t *mem, uint64_t len, const uint8_t *map)
{
	uint64_t i;

	for (i = 0; i < len; i++) {
		uint8_t got = map[i / LAYOUT_BLOCK_BYTES] ? mem[i] : 0;

		/* A stream's prefix was read when it was opened. */
		expect(got == in->file[off + i] || (in->streaming && off + i < LENGTH_PREFIX_BYTES));
	}
}

static int read_windows(const struct input *in, const struct layout *layout, struct pagesio *io)
{
	size_t room = (layout->slot_bytes + LAYOUT_BLOCK_BYTES - 1) / LAYOUT_BLOCK_BYTES;
	uint8_t *mem = calloc(room, LAYOUT_BLOCK_BYTES), *map = malloc(room);
	uint64_t w;
	int err = 0;

	expect(mem && map);
	for (w = 0; !err && w < layout->nr_windows; w++) {
		uint64_t len, off = layout_window(layout, w, &len);

		expect(len <= layout->slot_bytes && off + len <= layout->file_bytes);
		err = pagesio_read(io, off, mem, len, map);
		if (!err)
			check_window(in, off, mem, len, map);
	}
	free(mem);
	free(map);
	return err;
}

static int read_file(const struct input *in, const struct layout *layout)
{
	int fd = in->streaming ? fuzz_pipe(in->file, in->size) : fuzz_file(in->file, in->size);
	struct pagesio io = { 0 };
	int err = pagesio_open(&io, fd, in->streaming, layout->file_bytes);

	if (!err)
		err = read_windows(in, layout, &io);
	if (!err)
		err = pagesio_check_end(&io);
	expect(!err || fail_text()[0]);
	fail_clear();
	pagesio_done(&io);
	close(fd);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct layout layout;
	struct input in;
	size_t i;
	int err;

	if (!parse(data, size, &in))
		return 0;
	err = layout_init(&layout, in.bos, in.nr_bos, in.max_bytes);
	for (i = 0; i < in.nr_bos && in.bos[i].size; i++)
		;
	expect(!err == (i == in.nr_bos));
	if (!err)
		expect(!read_file(&in, &layout) == is_right(&in));
	layout_done(&layout);
	return 0;
}
