// SPDX-License-Identifier: GPL-2.0-only
/* SDMA packets: dword by dword, and what an interpreter makes of them. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "content/sdma.h"
#include "content_fixture.h"
#include "fake_drm.h"

#define MIB (1ull << 20)

static uint32_t dwords[1 << 16];

static struct sdma_ib new_ib(size_t max_dw)
{
	memset(dwords, 0xee, sizeof(dwords));
	return (struct sdma_ib){ .dw = dwords, .max_dw = max_dw };
}

TEST(packets_count_bytes_minus_one)
{
	static const uint32_t copy[] = { 1, 0xfff, 0, 0x22223000, 0x1111, 0x44445000, 0x3333 };
	static const uint32_t fill[] = { 11 | 2u << 30, 0x44445000, 0x3333, 0, 0xfff };
	struct sdma_ib ib = new_ib(64);

	assert_int_equal(sdma_add_copy(&ib, 0x333344445000, 0x111122223000, 0x1000), 0x1000);
	assert_int_equal(ib.nr_dw, 7);
	assert_memory_equal(dwords, copy, sizeof(copy));
	assert_int_equal(sdma_add_zeros(&ib, 0x333344445000, 0x1000), 0x1000);
	assert_int_equal(ib.nr_dw, 12);
	assert_memory_equal(dwords + 7, fill, sizeof(fill));
}

/* Walks the packets of 3 GiB + 5 bytes without executing them. */
TEST(long_copies_keep_within_the_count_field)
{
	const uint64_t len = 3072 * MIB + 5, src = 0x7f0000001000, dst = 0xffff0008;
	struct sdma_ib ib = new_ib(sizeof(dwords) / 4);
	uint64_t done = 0;

	assert_int_equal(sdma_add_copy(&ib, dst, src, len), len);
	for (size_t i = 0; i < ib.nr_dw; i += SDMA_COPY_DWORDS) {
		const uint32_t *dw = dwords + i;

		assert_int_equal(dw[0], 1);
		assert_true(dw[1] <= 0x3fffff);
		assert_int_equal(dw[3] | (uint64_t)dw[4] << 32, src + done);
		assert_int_equal(dw[5] | (uint64_t)dw[6] << 32, dst + done);
		done += dw[1] + 1;
	}
	assert_int_equal(done, len);
}

TEST(a_full_buffer_takes_what_fits)
{
	struct sdma_ib ib = new_ib(16);

	assert_int_equal(sdma_add_copy(&ib, 0, 0x1000000, 100 * MIB), 8 * MIB);
	assert_int_equal(ib.nr_dw, 14);
	assert_int_equal(sdma_add_copy(&ib, 0, 0x1000000, 4), 0);
	assert_int_equal(sdma_add_zeros(&ib, 0, 4), 0);
	sdma_finish(&ib);
	assert_int_equal(ib.nr_dw, 16);
	assert_int_equal(dwords[14] | dwords[15], 0);
	assert_int_equal(dwords[16], 0xeeeeeeee);
}

TEST(a_whole_buffer_needs_no_padding)
{
	struct sdma_ib ib = new_ib(56);

	assert_int_equal(sdma_add_copy(&ib, 0, 0x1000000, 8 * 4 * MIB), 32 * MIB);
	sdma_finish(&ib);
	assert_int_equal(ib.nr_dw, 56);
}

TEST(fills_that_are_not_whole_dwords_count_in_bytes)
{
	struct sdma_ib ib = new_ib(64);

	sdma_add_zeros(&ib, 0x1002, 8);
	sdma_add_zeros(&ib, 0x1000, 7);
	sdma_add_zeros(&ib, 0x1004, 8);
	assert_int_equal(dwords[0] >> 30, 0);
	assert_int_equal(dwords[5] >> 30, 0);
	assert_int_equal(dwords[10] >> 30, 2);
}

/* Copies and fills at random places do exactly what memcpy and memset do. */
TEST(interpreters_do_what_is_meant)
{
	enum { BYTES = 9 << 20 };
	uint8_t *src = malloc(BYTES), *dst = malloc(BYTES), *expected = malloc(BYTES);

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct sdma_ib ib = new_ib(sizeof(dwords) / 4);
		struct rng rng = { seed };

		for (size_t i = 0; i < BYTES; i++) {
			src[i] = (uint8_t)(i * 7 + seed);
			dst[i] = expected[i] = 0x5a;
		}
		for (int n = 0; n < 10; n++) {
			uint64_t len = 1 + rng_below(&rng, n ? 100000 : BYTES - 1), to = rng_below(&rng, BYTES - len);
			uint64_t from = rng_below(&rng, BYTES - len);

			if (rng_next(&rng) & 1) {
				sdma_add_copy(&ib, (uintptr_t)(dst + to), (uintptr_t)(src + from), len);
				memcpy(expected + to, src + from, len);
			} else {
				sdma_add_zeros(&ib, (uintptr_t)(dst + to), len);
				memset(expected + to, 0, len);
			}
		}
		sdma_finish(&ib);
		assert_int_equal(ib.nr_dw % SDMA_IB_ALIGN_DWORDS, 0);
		assert_int_equal(fake_drm_execute(dwords, ib.nr_dw), 0);
		assert_memory_equal(dst, expected, BYTES);
	}
	free(src);
	free(dst);
	free(expected);
}

/* The interpreter has to be able to say no, or the tests with it say nothing. */
TEST(the_interpreter_is_strict)
{
	uint32_t unknown[8] = { 0x42 }, long_count[8] = { 1, 0x400000 }, odd_fill[8] = { 11 | 2u << 30, 2, 0, 0, 3 };
	uint32_t cut_off[3] = { 1, 0xf, 0 };

	assert_true(fake_drm_execute(unknown, 8) < 0);
	assert_true(fake_drm_execute(long_count, 8) < 0);
	assert_true(fake_drm_execute(odd_fill, 8) < 0);
	assert_true(fake_drm_execute(cut_off, 3) < 0);
}

UNIT_MAIN(NULL, NULL)
