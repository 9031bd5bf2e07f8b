/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests/asicsim/gcn/programs/numbers.h has for gfx908, for the processor. */
#define min16(a, b)	    (f16) fminf(a, b)
#define max16(a, b)	    (f16) fmaxf(a, b)
#define floor16(a)	    (f16) floorf(a)
#define ceil16(a)	    (f16) ceilf(a)
#define trunc16(a)	    (f16) truncf(a)
#define rint16(a)	    (f16) rintf(a)
#define sqrt16(a)	    (f16) sqrtf(a)
#define root(a)		    sqrtf(a)
#define power(a)	    exp2f(a)
#define logarithm(a)	    log2f(a)
#define inverse_root(a)	    (f32)(1 / sqrt(a))
#define sine_of_turns(a)    (f32)(fabs(a) > 256 ? 0 : sin(2 * M_PI * (a - rint(a))))
#define cosine_of_turns(a)  (f32)(fabs(a) > 256 ? 1 : sin(2 * M_PI * (0.25 - fabs(a - rint(a)))))
#define frexp_mant(a)	    (f32) frexp_mant64(a)
#define frexp_exp(a)	    frexp_exp64(a)
#define is_of_class(a, b)   is_of_class_as(fpclassify(a), signbit(a), b)
#define is_of_class64(a, b) is_of_class_as(fpclassify(a), signbit(a), b)

static f16 fma16(f16 a, f16 b, f16 c)
{
	return (f16)((f64)a * (f64)b + (f64)c);
}

static f64 frexp_mant64(f64 a)
{
	int exponent;

	return frexp(a, &exponent);
}

static int frexp_exp64(f64 a)
{
	int exponent = 0;

	frexp(a, &exponent);
	return exponent;
}

static f32 fract(f32 a)
{
	f32 r = a - floorf(a);

	return r < 1 ? r : 1 - 0x1p-24f;
}

static f32 median(f32 a, f32 b, f32 c)
{
	return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

/* @mask: infinity, normal, denormal, 0: the negative ones from bit 2 up, the positive ones from bit 9 down */
static bool is_of_class_as(int class, bool negative, u32 mask)
{
	int n = class == FP_INFINITE ? 0 : class == FP_NORMAL ? 1 : class == FP_SUBNORMAL ? 2 : 3;

	return class != FP_NAN && mask >> (negative ? 2 + n : 9 - n) & 1;
}

static u32 dot4(u32 a, u32 b, u32 c)
{
	for (int at = 0; at < 32; at += 8)
		c += (u32)((s8)(a >> at) * (s8)(b >> at));
	return c;
}

static f32 dot2(u32 a, u32 b, f32 c)
{
	__float128 sum = (__float128)h_u(a) * h_u(b) + (__float128)h_u(a >> 16) * h_u(b >> 16);

	return (f32)(sum + (__float128)c);
}

static f32 flushed(f32 a)
{
	return fpclassify(a) == FP_SUBNORMAL ? copysignf(0, a) : a;
}

static f32 flushed_mul(f32 a, f32 b)
{
	return flushed(flushed(a) * flushed(b));
}

static f32 clamped_add(f32 a, f32 b)
{
	return fminf(fmaxf(0, a + b), 1);
}

static u32 clamped_u_add(u32 a, u32 b)
{
	return (u64)a + b > ~0u ? ~0u : a + b;
}

static u32 clamped_u_sub(u32 a, u32 b)
{
	return a > b ? a - b : 0;
}

#define PAIRS(name, result)                                                                                \
	static u32 half_##name(u64 a, u64 b, u64 c)                                                        \
	{                                                                                                  \
		(void)c;                                                                                   \
		return (u16)(result);                                                                      \
	}                                                                                                  \
	static u32 all_##name(u32 a, u32 b, u32 c)                                                         \
	{                                                                                                  \
		return half_##name((u16)a, (u16)b, (u16)c) | half_##name(a >> 16, b >> 16, c >> 16) << 16; \
	}
PAIRS(pair_add, u_h(h_u(a) + h_u(b)))
PAIRS(pair_sub, u_h(h_u(a) - h_u(b)))
PAIRS(pair_mul, u_h(h_u(a) * h_u(b)))
PAIRS(pair_fma, u_h(fma16(h_u(a), h_u(b), h_u(c))))
PAIRS(pair_u16_add, a + b)
PAIRS(pair_u16_sub, a - b)
PAIRS(pair_u16_mad, a *b + c)
PAIRS(pair_u16_shl, a << (b & 15))
PAIRS(pair_u16_shr, a >> (b & 15))
PAIRS(pair_s16_shr, (s16)a >> (b & 15))
#undef PAIRS
#define pair_add(a, b)	      all_pair_add(a, b, 0)
#define pair_sub(a, b)	      all_pair_sub(a, b, 0)
#define pair_mul(a, b)	      all_pair_mul(a, b, 0)
#define pair_fma(a, b, c)     all_pair_fma(a, b, c)
#define pair_u16_add(a, b)    all_pair_u16_add(a, b, 0)
#define pair_u16_sub(a, b)    all_pair_u16_sub(a, b, 0)
#define pair_u16_mad(a, b, c) all_pair_u16_mad(a, b, c)
#define pair_u16_shl(a, b)    all_pair_u16_shl(a, b, 0)
#define pair_u16_shr(a, b)    all_pair_u16_shr(a, b, 0)
#define pair_s16_shr(a, b)    all_pair_s16_shr(a, b, 0)
