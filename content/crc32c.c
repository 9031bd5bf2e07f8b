// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC-32C: by products of polynomials where the processor makes four at once, else by the SSE4.2 instruction; by
 * arithmetic alone for runs of zeros, and where there is neither, as in some virtual machines.
 *
 * A CRC is a polynomial over GF(2), kept with its bits reflected: bit 31 is x^0. Appending
 * n zero bytes multiplies it by x^(8n), modulo the generator.
 */
#include "content/content.h"

#include <immintrin.h>
#include <pthread.h>
#include <string.h>

#define POLY	   0x82f63b78u
#define ONE	   0x80000000u /* x^0 */
#define BYTE	   0x00800000u /* x^8 */
/* The instruction takes 3 cycles but starts every cycle: three streams of this many bytes keep it busy. */
#define LANE_BYTES 4096
#define LINE_BYTES 64
#define FOLD_BYTES (4 * LINE_BYTES)
/* Far enough for memory, and into the next page, where the hardware's own prefetching ends. */
#define FOLD_AHEAD 2048

static bool have_instruction, have_products;
static uint32_t powers[64]; /* x^(8 * 2^n) */
static uint32_t lane_shift; /* x^(8 * LANE_BYTES) */
/* What moves the lower and the upper half of 16 bytes on by FOLD_BYTES. */
static uint64_t fold_low, fold_high;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Product of two polynomials modulo the generator. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		product ^= b & -(a >> 31);
		b = b >> 1 ^ (POLY & -(b & 1));
	}
	return product;
}

static uint32_t shift_for(uint64_t zero_bytes)
{
	uint32_t shift = ONE;

	for (unsigned int n = 0; zero_bytes; n++, zero_bytes >>= 1)
		if (zero_bytes & 1)
			shift = multiply(shift, powers[n]);
	return shift;
}

static void init_once(void)
{
	powers[0] = BYTE;
	for (int n = 1; n < 64; n++)
		powers[n] = multiply(powers[n - 1], powers[n - 1]);
	lane_shift = shift_for(LANE_BYTES);
	fold_low = (uint64_t)shift_for(FOLD_BYTES + 4) << 1;
	fold_high = (uint64_t)shift_for(FOLD_BYTES - 4) << 1;
	have_instruction = __builtin_cpu_supports("sse4.2");
	have_products = have_instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

uint32_t crc32c_bytes(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (crc = ~crc; len; len--, p++)
		crc = multiply(BYTE, crc ^ *p);
	return ~crc;
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

__attribute__((target("sse4.2"))) static uint32_t crc_serial(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t c = crc;

	for (; len >= 8; len -= 8, p += 8)
		c = _mm_crc32_u64(c, load64(p));
	for (; len; len--, p++)
		c = _mm_crc32_u8((uint32_t)c, *p);
	return (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t crc_three_lanes(uint32_t crc, const uint8_t *p)
{
	uint64_t a = crc, b = 0, c = 0;

	for (size_t line = 0; line < LANE_BYTES; line += LINE_BYTES) {
		/* The hardware's own prefetching ends with the page, and each stream begins a new one soon. */
		for (size_t lane = 3; lane < 6; lane++)
			_mm_prefetch((const char *)p + lane * LANE_BYTES + line, _MM_HINT_T0);
		for (size_t i = line; i < line + LINE_BYTES; i += 8) {
			a = _mm_crc32_u64(a, load64(p + i));
			b = _mm_crc32_u64(b, load64(p + LANE_BYTES + i));
			c = _mm_crc32_u64(c, load64(p + 2 * LANE_BYTES + i));
		}
	}
	b ^= multiply((uint32_t)a, lane_shift);
	return (uint32_t)c ^ multiply((uint32_t)b, lane_shift);
}

/* Each 16 bytes move on to those FOLD_BYTES behind them; what remains in the end has the CRC of the whole. */
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) static uint32_t crc_folded(uint32_t crc, const uint8_t *p,
									       size_t len)
{
	const __m512i factors = _mm512_broadcast_i32x4(_mm_set_epi64x((long long)fold_high, (long long)fold_low));
	__m512i sums[FOLD_BYTES / LINE_BYTES];
	uint8_t rest[FOLD_BYTES];

#pragma GCC unroll 4
	for (size_t i = 0; i < FOLD_BYTES / LINE_BYTES; i++)
		sums[i] = _mm512_loadu_si512(p + i * LINE_BYTES);
	sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	for (len -= FOLD_BYTES, p += FOLD_BYTES; len >= FOLD_BYTES; len -= FOLD_BYTES, p += FOLD_BYTES) {
#pragma GCC unroll 4
		for (size_t i = 0; i < FOLD_BYTES / LINE_BYTES; i++) {
			__m512i low = _mm512_clmulepi64_epi128(sums[i], factors, 0x00);
			__m512i high = _mm512_clmulepi64_epi128(sums[i], factors, 0x11);

			_mm_prefetch((const char *)p + FOLD_AHEAD + i * LINE_BYTES, _MM_HINT_T0);
			sums[i] = _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(p + i * LINE_BYTES), 0x96);
		}
	}
	memcpy(rest, sums, sizeof(rest));
	return crc_serial(crc_serial(0, rest, sizeof(rest)), p, len);
}

uint32_t crc32c_lanes(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	pthread_once(&once, init_once);
	if (!have_instruction)
		return crc32c_bytes(crc, data, len);
	crc = ~crc;
	for (; len >= 3 * LANE_BYTES; len -= 3 * LANE_BYTES, p += 3 * LANE_BYTES)
		crc = crc_three_lanes(crc, p);
	return ~crc_serial(crc, p, len);
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, init_once);
	if (have_products && len >= FOLD_BYTES)
		return ~crc_folded(~crc, data, len);
	return crc32c_lanes(crc, data, len);
}

uint32_t crc32c_zeros(uint32_t crc, uint64_t len)
{
	pthread_once(&once, init_once);
	return ~multiply(~crc, shift_for(len));
}

uint32_t crc32c_shift(uint32_t crc, uint64_t len)
{
	pthread_once(&once, init_once);
	return multiply(crc, shift_for(len));
}
