// SPDX-License-Identifier: GPL-2.0-only
/* The pure parts of the content engine: layout of a pages file, and CRC-32C. */
#include <stdarg.h>
#include <string.h>

#include "unit.h"
#include "content/layout.h"
#include "amdgpu_plugin_util.h"
#include "content_fixture.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* ---- layout ---- */

static struct layout layout_of(const struct content_bo *bos, size_t nr, uint64_t max_bytes)
{
	struct layout layout;

	assert_int_equal(layout_init(&layout, bos, nr, max_bytes), 0);
	return layout;
}

TEST(staging_memory_keeps_the_cap)
{
	static const uint64_t sizes[] = { 1, 4088, 4089, 100 * KIB, 2 * MIB, 300 * MIB, 5 * GIB, 200 * GIB };
	static const uint64_t caps[] = { 1, 4095, 4096, 8191, 8192, 16383, 16384, 1000000, 8 * MIB, 9 * MIB, GIB };

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
		for (size_t c = 0; c < ARRAY_SIZE(caps); c++) {
			struct content_bo bo = { .size = sizes[s] };
			struct layout layout = layout_of(&bo, 1, caps[c]);
			uint64_t bytes = layout.nr_slots * layout.slot_bytes;

			assert_true(bytes <= (caps[c] < 4096 ? 4096 : caps[c]));
			assert_true(layout.nr_slots >= 1 && layout.nr_slots <= LAYOUT_MAX_SLOTS);
			assert_int_equal(layout.slot_bytes % LAYOUT_BLOCK_BYTES, 0);
			layout_done(&layout);
		}
}

TEST(default_staging_is_128_mib_for_large_contents)
{
	struct content_bo bo = { .size = 100 * GIB };
	struct layout layout = layout_of(&bo, 1, 0);

	assert_int_equal(layout.slot_bytes, 8 * MIB);
	assert_int_equal(layout.nr_slots, 16);
	layout_done(&layout);
}

TEST(windows_and_pieces_cover_every_byte_once)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct rng rng = { seed };
		struct content_bo bos[30];
		size_t nr = rng_below(&rng, ARRAY_SIZE(bos) + 1), bo = 0;
		uint64_t at = 0, file_end = 0;
		struct layout layout;

		for (size_t i = 0; i < nr; i++)
			bos[i] = (struct content_bo){ .size = 1 + rng_below(&rng, rng_next(&rng) & 1 ? 20 : 50000) };
		layout = layout_of(bos, nr, 1 + rng_below(&rng, 100000));
		for (uint64_t w = 0; w < layout.nr_windows; w++) {
			uint64_t len, off = layout_window(&layout, w, &len);
			struct piece piece;

			assert_int_equal(off, file_end);
			assert_true(len > 0);
			file_end = off + len;
			layout_for_each_piece (&layout, off, off + len, &piece) {
				while (at == bos[bo].size) {
					bo++;
					at = 0;
				}
				assert_int_equal(piece.bo, bo);
				assert_int_equal(piece.bo_off, at);
				assert_int_equal(piece.file_off, layout.starts[bo] + at);
				assert_true(piece.len > 0 && piece.file_off + piece.len <= off + len);
				at += piece.len;
			}
		}
		assert_int_equal(file_end, layout.file_bytes);
		if (nr) {
			assert_int_equal(bo, nr - 1);
			assert_int_equal(at, bos[bo].size);
		}
		layout_done(&layout);
	}
}

TEST(sizes_that_make_no_file_are_refused)
{
	struct content_bo empty[] = { { .size = 4096 }, { .size = 0 } };
	struct content_bo huge[] = { { .size = UINT64_MAX - 4096 }, { .size = 8192 } };
	struct content_bo beyond[] = { { .size = INT64_MAX } };
	struct layout layout;

	assert_int_equal(layout_init(&layout, empty, 2, 0), -EINVAL);
	layout_done(&layout);
	assert_int_equal(layout_init(&layout, huge, 2, 0), -EOVERFLOW);
	layout_done(&layout);
	assert_int_equal(layout_init(&layout, beyond, 1, 0), -EOVERFLOW);
	layout_done(&layout);
}

/* ---- CRC-32C ---- */

TEST(crc_has_the_published_values)
{
	uint8_t buf[32];

	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	memset(buf, 0, sizeof(buf)); /* RFC 3720, B.4 */
	assert_int_equal(crc32c(0, buf, sizeof(buf)), 0x8a9136aa);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(crc32c(0, buf, sizeof(buf)), 0x62a8ab43);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	assert_int_equal(crc32c(0, buf, sizeof(buf)), 0x46dd794e);
	assert_int_equal(crc32c(0x12345678, buf, 0), 0x12345678);
}

TEST(instructions_and_arithmetic_agree_at_any_length_and_place)
{
	static uint8_t buf[100000];
	struct rng rng = { 1 };

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)rng_next(&rng);
	for (int n = 0; n < 400; n++) {
		size_t from = rng_below(&rng, 5000), cut;
		size_t len = rng_below(&rng, n % 2 ? 64 : sizeof(buf) - from);
		uint32_t whole = crc32c(0, buf + from, len);

		assert_int_equal(whole, crc32c_bytes(0, buf + from, len));
		assert_int_equal(whole, crc32c_lanes(0, buf + from, len));
		cut = len ? rng_below(&rng, len) : 0;
		assert_int_equal(whole, crc32c(crc32c(0, buf + from, cut), buf + from + cut, len - cut));
	}
}

TEST(zeros_by_arithmetic_are_zeros)
{
	static const uint8_t zeros[70000];
	struct rng rng = { 2 };

	for (int n = 0; n < 200; n++) {
		uint32_t start = (uint32_t)rng_next(&rng);
		size_t len = rng_below(&rng, n % 2 ? 20 : sizeof(zeros));

		assert_int_equal(crc32c_zeros(start, len), crc32c(start, zeros, len));
	}
	/* 5 GiB in one step and in many. */
	assert_int_equal(crc32c_zeros(7, 5 * GIB), crc32c_zeros(crc32c_zeros(7, 3 * GIB + 1), 2 * GIB - 1));
}

UNIT_MAIN(NULL, NULL)
