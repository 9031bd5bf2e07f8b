/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IEEE 754 in integers: kernel code has no floating point, and results do not depend on the processor. Rounds to the
 * nearest, ties to even; has denormals. Numbers are their bits.
 */
#ifndef GCN_FLOAT_H
#define GCN_FLOAT_H

#include "port.h"

struct fp {
	unsigned int precision; /* bits of the significand, with the hidden one */
	int emin;		/* of the last bit of the smallest number */
	u64 inf;		/* also the mask of the exponent */
};

enum fp_rounding { FP_TRUNC, FP_FLOOR, FP_CEIL, FP_EVEN };
enum fp_order { FP_LESS = 1, FP_EQUAL = 2, FP_GREATER = 4, FP_UNORDERED = 8 };

extern const struct fp fp16, bf16, fp32, fp64;

u64 fp_fma(const struct fp *f, u64 a, u64 b, u64 c);
u64 fp_div(const struct fp *f, u64 a, u64 b);
u64 fp_scale(const struct fp *f, u64 a, s32 exponent);
u64 fp_round(const struct fp *f, u64 a, enum fp_rounding how);
u64 fp_convert(const struct fp *from, const struct fp *to, u64 a);
u64 fp_from_int(const struct fp *f, bool negative, u64 magnitude);
/* Towards 0; what does not fit becomes @min or @max, which is no number 0. */
s64 fp_to_int(const struct fp *f, u64 a, s64 min, s64 max);
enum fp_order fp_compare(const struct fp *f, u64 a, u64 b);
u64 fp_min_max(const struct fp *f, u64 a, u64 b, enum fp_order prefer);
bool fp_is_nan(const struct fp *f, u64 a);
/* 0 of the same sign for a denormal. */
u64 fp_flush(const struct fp *f, u64 a);
/* The exponent field, and the bit of the sign. */
s32 fp_exponent(const struct fp *f, u64 a);
u64 fp_sign(const struct fp *f);

static inline u64 fp_one(const struct fp *f)
{
	return f->inf >> 1 & f->inf;
}

u64 fp_add(const struct fp *f, u64 a, u64 b);
u64 fp_mul(const struct fp *f, u64 a, u64 b);
/* Not fused, and without denormals. */
u64 fp_mad(const struct fp *f, u64 a, u64 b, u64 c);

/* Rounded correctly; of fp32 nearly so. */
u64 fp_sqrt(const struct fp *f, u64 a);
u64 fp_rsq(const struct fp *f, u64 a);
/* Of fp32, nearly rounded correctly. */
u64 fp_exp2(u64 a);
u64 fp_log2(u64 a);
/* Of an angle in turns; beyond 256 of them as the chip has it, 0 and 1. */
u64 fp_sin_turns(u64 a);
u64 fp_cos_turns(u64 a);
/* From 0.5 to below 1, and the exponent that goes with it. */
u64 fp_frexp_mant(const struct fp *f, u64 a);
s32 fp_frexp_exp(const struct fp *f, u64 a);
/* What is behind the point, less than 1. */
u64 fp_fract(const struct fp *f, u64 a);
u64 fp_median(const struct fp *f, u64 a, u64 b, u64 c);
/* A bit by kind: NaN that signals, that does not, infinity, normal, denormal, 0; then the positive ones. */
u32 fp_class(const struct fp *f, u64 a);
/* From 0 to 1; what is no number becomes 0. */
u64 fp_clamp(const struct fp *f, u64 a);
/* The exact sum of products of @f's numbers, of 16 bits, and of c, a number of fp32, rounded once. */
u64 fp_dot(const struct fp *f, const u16 *a, const u16 *b, unsigned int n, u64 c);

/* The steps of a division, as the instructions of these names do them. */
u64 fp_div_scale(const struct fp *f, u64 a, u64 b, u64 c, bool *scaled);
u64 fp_div_fmas(const struct fp *f, u64 a, u64 b, u64 c, bool scaled);
u64 fp_div_fixup(const struct fp *f, u64 a, u64 b, u64 c);

#endif
