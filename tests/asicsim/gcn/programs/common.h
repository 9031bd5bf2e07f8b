/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers of lanes.h, the same for both compilers, which define u32 and the like. */
static inline f32 f_u(u64 x)
{
	union { u32 u; f32 f; } v;

	v.u = (u32)x;
	return v.f;
}

static inline u64 u_f(f32 x)
{
	union { u32 u; f32 f; } v;

	v.f = x;
	return v.u;
}

static inline f64 d_u(u64 x)
{
	union { u64 u; f64 d; } v;

	v.u = x;
	return v.d;
}

static inline u64 u_d(f64 x)
{
	union { u64 u; f64 d; } v;

	v.d = x;
	return v.u;
}

static inline f16 h_u(u64 x)
{
	union { u16 u; f16 h; } v;

	v.u = (u16)x;
	return v.h;
}

static inline u64 u_h(f16 x)
{
	union { u16 u; f16 h; } v;

	v.h = x;
	return v.u;
}

/* A number within the range of one of 16 bits, or a little outside. */
static inline u64 narrow32(u64 x)
{
	return (x & 0x807fffff) | (0x64 + (x >> 40 & 63) % 46) << 23;
}

/* A positive number that has no extreme exponent; one whose power of 2 there is. */
static inline u64 positive32(u64 x)
{
	return (x & 0x7fffff) | (0x20 + (x >> 40 & 127)) << 23;
}

static inline u64 exponent32(u64 x)
{
	return (x & 0x807fffff) | (0x60 + (x >> 40 & 63) % 37) << 23;
}

/* A number near 1 a whole part and a fraction, and one that an u32 has room for. */
static inline u64 mid32(u64 x)
{
	return (x & 0x807fffff) | (0x70 + (x >> 40 & 31)) << 23;
}

static inline u64 part32(u64 x)
{
	return (x & 0x807fffff) | (0x7a + (x >> 40 & 31) % 28) << 23;
}

static inline u64 whole32(u64 x)
{
	return (x & 0x7fffff) | (0x7a + (x >> 40 & 31)) << 23;
}

static inline u64 mid64(u64 x)
{
	return (x & 0x800fffffffffffff) | (0x3e0 + (x >> 52 & 63)) << 52;
}

static inline u64 part64(u64 x)
{
	return (x & 0x800fffffffffffff) | (0x3fa + (x >> 52 & 63) % 34) << 52;
}

static inline u64 whole64(u64 x)
{
	return (x & 0xfffffffffffff) | (0x3fa + (x >> 52 & 63) % 36) << 52;
}

/* Minimum and maximum differ in what they do with a NaN that signals. */
static inline u64 quiet32(u64 x)
{
	return ~x & 0x7f800000 ? x : x | 0x400000;
}

static inline u64 quiet16(u64 x)
{
	return ~x & 0x7c00 ? x : x | 0x200;
}

static inline u64 quiet64(u64 x)
{
	return ~x & 0x7ff0000000000000 ? x : x | 0x8000000000000;
}

static inline u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline s32 min_s32(s32 a, s32 b)
{
	return a < b ? a : b;
}

static inline s32 max_s32(s32 a, s32 b)
{
	return a > b ? a : b;
}

static inline u32 collatz(u32 x, u32 most)
{
	u32 n = 0;

	for (; x > 1 && n < most; n++)
		x = x & 1 ? 3 * x + 1 : x / 2;
	return n << 16 ^ x;
}

static inline u64 gcd64(u64 a, u64 b)
{
	while (b) {
		u64 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static inline f32 sum32(f32 x, u32 n)
{
	f32 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += x * (f32)i - sum / 3.0f;
	return sum;
}

static inline f64 sum64(f64 x, u32 n)
{
	f64 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += x * i - sum / 3.0;
	return sum;
}
