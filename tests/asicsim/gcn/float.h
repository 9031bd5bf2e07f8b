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

extern const struct fp fp32, fp64;

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

/* The steps of a division, as the instructions of these names do them. */
u64 fp_div_scale(const struct fp *f, u64 a, u64 b, u64 c, bool *scaled);
u64 fp_div_fmas(const struct fp *f, u64 a, u64 b, u64 c, bool scaled);
u64 fp_div_fixup(const struct fp *f, u64 a, u64 b, u64 c);

#endif
