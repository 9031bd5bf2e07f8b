// SPDX-License-Identifier: GPL-2.0-only
/* Numbers are unpacked to a sign, a whole number and its exponent, and packed again with one rounding. */
#include "float.h"

typedef unsigned __int128 u128;

const struct fp fp16 = { .precision = 11, .emin = -24, .inf = 0x7c00 };
const struct fp bf16 = { .precision = 8, .emin = -133, .inf = 0x7f80 };
const struct fp fp32 = { .precision = 24, .emin = -149, .inf = 0x7f800000 };
const struct fp fp64 = { .precision = 53, .emin = -1074, .inf = 0x7ff0000000000000 };

struct num {
	bool negative;
	int exponent; /* of the last bit */
	u64 m;
};

u64 fp_sign(const struct fp *f)
{
	return f->inf + (1ULL << (f->precision - 1));
}

static u64 magnitude(const struct fp *f, u64 a)
{
	return a & (fp_sign(f) - 1);
}

bool fp_is_nan(const struct fp *f, u64 a)
{
	return magnitude(f, a) > f->inf;
}

static bool is_inf(const struct fp *f, u64 a)
{
	return magnitude(f, a) == f->inf;
}

static u64 quiet(const struct fp *f, u64 nan)
{
	return nan | 1ULL << (f->precision - 2);
}

static u64 default_nan(const struct fp *f)
{
	return quiet(f, f->inf);
}

s32 fp_exponent(const struct fp *f, u64 a)
{
	return magnitude(f, a) >> (f->precision - 1);
}

static bool is_denormal(const struct fp *f, u64 a)
{
	return magnitude(f, a) && !fp_exponent(f, a);
}

u64 fp_flush(const struct fp *f, u64 a)
{
	return is_denormal(f, a) ? a & fp_sign(f) : a;
}

static struct num unpack(const struct fp *f, u64 a)
{
	s32 e = fp_exponent(f, a);
	struct num n = { .negative = a & fp_sign(f), .exponent = f->emin, .m = a & ((1ULL << (f->precision - 1)) - 1) };

	if (e) {
		n.m |= 1ULL << (f->precision - 1);
		n.exponent += e - 1;
	}
	return n;
}

static int top_bit(u128 m)
{
	return m >> 64 ? 127 - __builtin_clzll((u64)(m >> 64)) : 63 - __builtin_clzll((u64)m);
}

/* Shifts right; what is lost shows in the last bit. */
static u128 shift_jam(u128 m, int by)
{
	if (by > 127)
		return m != 0;
	return by ? m >> by | ((m << (128 - by)) != 0) : m;
}

static u64 shift_jam64(u64 m, int by)
{
	if (by > 63)
		return m != 0;
	return by ? m >> by | ((m << (64 - by)) != 0) : m;
}

/* @m: up to 63 bits */
static u64 pack64(const struct fp *f, bool negative, int exponent, u64 m)
{
	u64 sign = negative ? fp_sign(f) : 0, bits;
	int last, by;

	if (!m)
		return sign;
	last = exponent + 63 - __builtin_clzll(m) - (int)(f->precision - 1);
	if (last < f->emin)
		last = f->emin;
	by = last - exponent;
	if (by <= 0) {
		m <<= -by;
	} else {
		m = by > 1 ? shift_jam64(m, by - 2) : m << 1;
		m = (m >> 2) + ((m >> 1 & 1) && (m & 5));
	}
	if (last - f->emin > (int)(f->inf >> (f->precision - 1)))
		return sign | f->inf;
	/* The hidden bit counts the exponent up. */
	bits = ((u64)(last - f->emin) << (f->precision - 1)) + m;
	return sign | (bits > f->inf ? f->inf : bits);
}

static u64 pack(const struct fp *f, bool negative, int exponent, u128 m)
{
	int by = m >> 62 ? top_bit(m) - 62 : 0;

	return pack64(f, negative, exponent + (by > 0 ? by : 0), (u64)(by > 0 ? shift_jam(m, by) : m));
}

static u64 fma_special(const struct fp *f, u64 a, u64 b, u64 c)
{
	bool negative = (a ^ b) & fp_sign(f), product_inf = is_inf(f, a) || is_inf(f, b);

	if (fp_is_nan(f, a))
		return quiet(f, a);
	if (fp_is_nan(f, b))
		return quiet(f, b);
	if (fp_is_nan(f, c))
		return quiet(f, c);
	if (product_inf && (!magnitude(f, a) || !magnitude(f, b)))
		return default_nan(f);
	if (product_inf && is_inf(f, c) && negative != !!(c & fp_sign(f)))
		return default_nan(f);
	return product_inf ? f->inf | (negative ? fp_sign(f) : 0) : c;
}

static bool is_special(const struct fp *f, u64 a)
{
	return magnitude(f, a) >= f->inf;
}

/* The highest bit at 126: room for a carry. */
static u128 normalize(u128 m, int *exponent)
{
	int by = 126 - top_bit(m);

	*exponent -= by;
	return by < 0 ? m >> -by : m << by;
}

static u64 add_wide(const struct fp *f, bool xs, int xe, u128 x, bool ys, int ye, u128 y)
{
	x = normalize(x, &xe);
	y = normalize(y, &ye);
	if (ye > xe)
		return add_wide(f, ys, ye, y, xs, xe, x);
	y = shift_jam(y, xe - ye);
	if (xs == ys)
		return pack(f, xs, xe, x + y);
	if (x == y)
		return 0;
	return x > y ? pack(f, xs, xe, x - y) : pack(f, ys, xe, y - x);
}

/* The same of numbers of up to 32 bits: the product has 48 bits, and 62 are enough for the sum. Neither is 0. */
static u64 add_narrow(const struct fp *f, struct num product, struct num z)
{
	int by = __builtin_clzll(product.m) - 2;
	struct num small;

	product.m <<= by;
	product.exponent -= by;
	by = __builtin_clzll(z.m) - 2;
	z.m <<= by;
	z.exponent -= by;
	small = product.exponent < z.exponent ? product : z;
	if (product.exponent < z.exponent)
		product = z;
	small.m = shift_jam64(small.m, product.exponent - small.exponent);
	if (product.negative == small.negative)
		return pack64(f, product.negative, product.exponent, product.m + small.m);
	if (product.m == small.m)
		return 0;
	if (product.m > small.m)
		return pack64(f, product.negative, product.exponent, product.m - small.m);
	return pack64(f, small.negative, product.exponent, small.m - product.m);
}

static bool is_narrow(const struct fp *f)
{
	return f->precision <= 24;
}

/* a * b + c, times 2 to the power of @by, rounded once. */
static u64 fma_scaled(const struct fp *f, u64 a, u64 b, u64 c, int by)
{
	struct num x = unpack(f, a), y = unpack(f, b), z = unpack(f, c);
	u128 product = (u128)x.m * y.m;
	bool negative = x.negative != y.negative;

	if (is_special(f, a) || is_special(f, b) || is_special(f, c))
		return fma_special(f, a, b, c);
	if (!product && !z.m)
		return negative && z.negative ? fp_sign(f) : 0;
	x.exponent += by;
	z.exponent += by;
	if (!product)
		return pack64(f, z.negative, z.exponent, z.m);
	if (!z.m)
		return pack(f, negative, x.exponent + y.exponent, product);
	if (is_narrow(f))
		return add_narrow(f, (struct num){ negative, x.exponent + y.exponent, (u64)product }, z);
	return add_wide(f, negative, x.exponent + y.exponent, product, z.negative, z.exponent, z.m);
}

u64 fp_fma(const struct fp *f, u64 a, u64 b, u64 c)
{
	return fma_scaled(f, a, b, c, 0);
}

u64 fp_add(const struct fp *f, u64 a, u64 b)
{
	return fp_fma(f, a, fp_one(f), b);
}

/* A product of 0 keeps its sign. */
u64 fp_mul(const struct fp *f, u64 a, u64 b)
{
	return fp_fma(f, a, b, (a ^ b) & fp_sign(f));
}

u64 fp_mad(const struct fp *f, u64 a, u64 b, u64 c)
{
	u64 product = fp_flush(f, fp_mul(f, fp_flush(f, a), fp_flush(f, b)));

	return fp_flush(f, fp_add(f, product, fp_flush(f, c)));
}

static u64 div_special(const struct fp *f, u64 a, u64 b)
{
	u64 sign = (a ^ b) & fp_sign(f);

	if (fp_is_nan(f, a))
		return quiet(f, a);
	if (fp_is_nan(f, b))
		return quiet(f, b);
	if ((is_inf(f, a) && is_inf(f, b)) || (!magnitude(f, a) && !magnitude(f, b)))
		return default_nan(f);
	return sign | (is_inf(f, a) || !magnitude(f, b) ? f->inf : 0);
}

/* Bit by bit, with room for 62 of them: the highest bits of both are at 62. */
static u64 divide(u64 x, u64 y)
{
	u128 rest = x;
	u64 quotient = 0;

	for (int i = 0; i < 62; i++) {
		quotient = quotient << 1 | (rest >= y);
		rest = (rest >= y ? rest - y : rest) << 1;
	}
	return quotient << 1 | (rest != 0);
}

u64 fp_div(const struct fp *f, u64 a, u64 b)
{
	struct num x = unpack(f, a), y = unpack(f, b);
	bool negative = x.negative != y.negative;
	int by;

	if (is_special(f, a) || is_special(f, b) || !x.m || !y.m)
		return div_special(f, a, b);
	by = __builtin_clzll(x.m) - 1;
	x.m <<= by;
	x.exponent -= by;
	by = __builtin_clzll(y.m) - (is_narrow(f) ? 40 : 1);
	y.m <<= by;
	y.exponent -= by;
	if (is_narrow(f))
		return pack64(f, negative, x.exponent - y.exponent - 1, x.m / y.m << 1 | (x.m % y.m != 0));
	return pack64(f, negative, x.exponent - y.exponent - 62, divide(x.m, y.m));
}

static s32 clamp_exponent(s32 exponent)
{
	return exponent < -5000 ? -5000 : exponent > 5000 ? 5000 : exponent;
}

u64 fp_scale(const struct fp *f, u64 a, s32 exponent)
{
	struct num x = unpack(f, a);

	if (fp_is_nan(f, a))
		return quiet(f, a);
	return is_inf(f, a) ? a : pack(f, x.negative, x.exponent + clamp_exponent(exponent), x.m);
}

/* Whole and, in *rest, 0, 1, 2 or 3: none, less than half, half or more than half of the last bit. */
static u64 whole(struct num x, unsigned int *rest)
{
	u128 m = shift_jam((u128)x.m << 2, -x.exponent);

	*rest = m & 3;
	return m >> 2;
}

u64 fp_round(const struct fp *f, u64 a, enum fp_rounding how)
{
	struct num x = unpack(f, a);
	unsigned int rest;
	u64 n;

	if (fp_is_nan(f, a))
		return quiet(f, a);
	if (is_inf(f, a) || x.exponent >= 0)
		return a;
	n = whole(x, &rest);
	if (how == FP_EVEN)
		n += rest == 3 || (rest == 2 && (n & 1));
	else
		n += rest && ((how == FP_FLOOR && x.negative) || (how == FP_CEIL && !x.negative));
	return pack(f, x.negative, 0, n);
}

u64 fp_convert(const struct fp *from, const struct fp *to, u64 a)
{
	struct num x = unpack(from, a);
	u64 sign = x.negative ? fp_sign(to) : 0;

	if (fp_is_nan(from, a))
		return sign | default_nan(to);
	return is_inf(from, a) ? sign | to->inf : pack(to, x.negative, x.exponent, x.m);
}

u64 fp_from_int(const struct fp *f, bool negative, u64 m)
{
	return pack(f, negative, 0, m);
}

s64 fp_to_int(const struct fp *f, u64 a, s64 min, s64 max)
{
	struct num x = unpack(f, a);
	unsigned int rest;
	u64 n;

	if (fp_is_nan(f, a))
		return 0;
	if (x.exponent > 0 && (is_inf(f, a) || x.exponent + top_bit(x.m) > 62))
		return x.negative ? min : max;
	n = x.exponent >= 0 ? x.m << x.exponent : whole(x, &rest);
	if (x.negative)
		return -(s64)n < min ? min : -(s64)n;
	return (s64)n > max ? max : (s64)n;
}

/* Grows with the number. */
static s64 ordered(const struct fp *f, u64 a)
{
	return a & fp_sign(f) ? -(s64)magnitude(f, a) : (s64)magnitude(f, a);
}

enum fp_order fp_compare(const struct fp *f, u64 a, u64 b)
{
	s64 x = ordered(f, a), y = ordered(f, b);

	if (fp_is_nan(f, a) || fp_is_nan(f, b))
		return FP_UNORDERED;
	return x < y ? FP_LESS : x > y ? FP_GREATER : FP_EQUAL;
}

u64 fp_min_max(const struct fp *f, u64 a, u64 b, enum fp_order prefer)
{
	if (fp_is_nan(f, a))
		return fp_is_nan(f, b) ? quiet(f, a) : b;
	if (fp_is_nan(f, b))
		return a;
	if (!magnitude(f, a) && !magnitude(f, b))
		return prefer == FP_LESS ? a | b : a & b;
	return fp_compare(f, a, b) == prefer ? a : b;
}

static s32 div_step(const struct fp *f)
{
	return f == &fp64 ? 128 : 64;
}

/*
 * What of a quotient's steps would be too small or too large is scaled, and the last step scales back if the mask says
 * so. Where the divisor's reciprocal and the quotient are both too small, the ISA's document has the divisor become
 * larger still, which would make it infinite and the quotient no number: it becomes smaller.
 */
u64 fp_div_scale(const struct fp *f, u64 a, u64 b, u64 c, bool *scaled)
{
	s32 step = div_step(f), eb = fp_exponent(f, b), ec = fp_exponent(f, c);
	s32 far = f == &fp64 ? 768 : 96, tiny = f == &fp64 ? 53 : 23, max = f == &fp64 ? 2045 : 253;
	bool reciprocal_small = eb >= max, quotient_small = ec - eb <= -(max / 2);

	*scaled = false;
	if (!magnitude(f, b) || !magnitude(f, c))
		return default_nan(f);
	*scaled = ec - eb >= far || (!is_denormal(f, b) && quotient_small);
	if (ec - eb >= far)
		return a == b ? fp_scale(f, a, step) : a;
	if (is_denormal(f, b))
		return fp_scale(f, a, step);
	if (reciprocal_small)
		return a == b || !quotient_small ? fp_scale(f, a, -step) : a;
	if (quotient_small)
		return a == c ? fp_scale(f, a, step) : a;
	return ec <= tiny ? fp_scale(f, a, step) : a;
}

/* @c: the quotient so far, too large or too small by a step if it was scaled */
u64 fp_div_fmas(const struct fp *f, u64 a, u64 b, u64 c, bool scaled)
{
	s32 bias = (s32)(fp_one(f) >> (f->precision - 1)), step = div_step(f);

	return fma_scaled(f, a, b, c, !scaled ? 0 : fp_exponent(f, c) > bias ? step : -step);
}

/* @a: the quotient so far, of @c by @b */
u64 fp_div_fixup(const struct fp *f, u64 a, u64 b, u64 c)
{
	u64 sign = (b ^ c) & fp_sign(f);
	s32 e = fp_exponent(f, c) - fp_exponent(f, b);

	if (is_special(f, b) || is_special(f, c) || !magnitude(f, b) || !magnitude(f, c))
		return div_special(f, c, b);
	if (e < (f == &fp64 ? -1075 : -150))
		return sign;
	return e > (f == &fp64 ? 1024 : 128) ? sign | f->inf : magnitude(f, a) | sign;
}

/* ---- roots, powers and logarithms ---- */

u64 fp_sqrt(const struct fp *f, u64 a)
{
	struct num x = unpack(f, a);
	u64 root = 0;
	u128 m;
	int by;

	if (fp_is_nan(f, a) || !x.m)
		return fp_is_nan(f, a) ? quiet(f, a) : a;
	if (x.negative || is_inf(f, a))
		return x.negative ? default_nan(f) : a;
	/* The highest bit at 124 or 125, and the exponent even. */
	by = 124 - top_bit(x.m);
	by += (x.exponent - by) & 1;
	m = (u128)x.m << by;
	for (u64 bit = 1ULL << 62; bit; bit >>= 1)
		root |= (u128)(root | bit) * (root | bit) <= m ? bit : 0;
	return pack(f, false, (x.exponent - by) / 2 - 1, (u128)root << 1 | ((u128)root * root != m));
}

u64 fp_rsq(const struct fp *f, u64 a)
{
	u64 root;

	if (!magnitude(f, a))
		return a | f->inf;
	root = fp_sqrt(&fp64, fp_convert(f, &fp64, a));
	return fp_convert(&fp64, f, fp_div(&fp64, fp_one(&fp64), root));
}

#define ONE62 (1ULL << 62)
#define LN2   0x2c5c85fdf473de6aULL /* the natural logarithm of 2, in parts of 2^62 */

/* 2 to the power of @fraction parts of 2^40, in parts of 2^62: the exponential's series */
static u64 power_of_fraction(u64 fraction)
{
	u64 x = (u64)((u128)fraction * LN2 >> 40), sum = ONE62;

	for (unsigned int k = 18; k; k--)
		sum = ONE62 + (u64)((u128)x * sum >> 62) / k;
	return sum;
}

u64 fp_exp2(u64 a)
{
	struct num x = unpack(&fp32, a);
	int by = 40 + x.exponent;
	s64 n;

	if (fp_is_nan(&fp32, a))
		return quiet(&fp32, a);
	if (is_inf(&fp32, a) || x.exponent > -15) /* 2^9 or more */
		return x.negative ? 0 : fp32.inf;
	n = by >= 0 ? (s64)(x.m << by) : by > -40 ? (s64)(x.m >> -by) : 0;
	n = x.negative ? -n : n;
	return pack(&fp32, false, (int)(n >> 40) - 62, power_of_fraction((u64)n & ((1ULL << 40) - 1)));
}

/* Of a number from 1 to below 2, in parts of 2^63: in parts of 2^56, bit by bit */
static u64 logarithm_of_fraction(u64 m)
{
	u64 r = 0;
	u128 square;

	for (int i = 0; i < 56; i++) {
		square = (u128)m * m;
		r = r << 1 | (u64)(square >> 127);
		m = (u64)(square >> (square >> 127 ? 64 : 63));
	}
	return r;
}

u64 fp_log2(u64 a)
{
	struct num x = unpack(&fp32, a);
	s64 whole;
	u64 r;
	int by;

	if (fp_is_nan(&fp32, a))
		return quiet(&fp32, a);
	if (!x.m)
		return fp_sign(&fp32) | fp32.inf;
	if (x.negative || is_inf(&fp32, a))
		return x.negative ? default_nan(&fp32) : a;
	by = __builtin_clzll(x.m);
	whole = x.exponent + 63 - by;
	r = logarithm_of_fraction(x.m << by);
	if (whole >= 0)
		return pack(&fp32, false, -56, ((u128)whole << 56) + r);
	return pack(&fp32, true, -56, ((u128)-whole << 56) - r);
}

#define HALF_PI 0x6487ed5110b4611aULL /* in parts of 2^62 */

/* @quarter: at most one of a turn, in parts of 2^60; in parts of 2^62: the series */
static u64 sine_of_quarter(u64 quarter)
{
	u64 x = (u64)((u128)quarter * HALF_PI >> 60), square = (u64)((u128)x * x >> 62), sum = ONE62;

	for (unsigned int k = 22; k; k -= 2)
		sum = ONE62 - (u64)((u128)square * sum >> 62) / (k * (k + 1));
	return (u64)((u128)x * sum >> 62);
}

/* @turn: in parts of 2^62, of which whole ones do not matter */
static u64 sine(bool negative, u64 turn)
{
	u64 quarter = turn & (ONE62 / 4 - 1);

	if (turn >> 60 & 1)
		quarter = ONE62 / 4 - quarter;
	return pack(&fp32, negative != (turn >> 61 & 1), -62, sine_of_quarter(quarter));
}

static u64 turn_of(struct num x)
{
	int by = 62 + x.exponent;

	return by >= 0 ? x.m << by : by > -64 ? x.m >> -by : 0;
}

#define MOST_TURNS 0x43800000u /* 256 */
#define FEW_TURNS  0x38000000u /* 2^-15: the sine is the angle */
#define TWO_PI	   0x401921fb54442d18ULL

u64 fp_sin_turns(u64 a)
{
	u64 size = magnitude(&fp32, a);

	if (size >= fp32.inf)
		return fp_is_nan(&fp32, a) ? quiet(&fp32, a) : default_nan(&fp32);
	if (size > MOST_TURNS)
		return 0;
	if (size < FEW_TURNS)
		return fp_convert(&fp64, &fp32, fp_mul(&fp64, fp_convert(&fp32, &fp64, a), TWO_PI));
	return sine(a & fp_sign(&fp32), turn_of(unpack(&fp32, a)));
}

u64 fp_cos_turns(u64 a)
{
	u64 size = magnitude(&fp32, a);

	if (size >= fp32.inf)
		return fp_is_nan(&fp32, a) ? quiet(&fp32, a) : default_nan(&fp32);
	return size > MOST_TURNS ? fp_one(&fp32) : sine(false, turn_of(unpack(&fp32, a)) + ONE62 / 4);
}

/* ---- parts of a number ---- */

u64 fp_frexp_mant(const struct fp *f, u64 a)
{
	struct num x = unpack(f, a);

	if (is_special(f, a) || !x.m)
		return fp_is_nan(f, a) ? quiet(f, a) : a;
	return pack(f, x.negative, -1 - top_bit(x.m), x.m);
}

s32 fp_frexp_exp(const struct fp *f, u64 a)
{
	struct num x = unpack(f, a);

	return is_special(f, a) || !x.m ? 0 : x.exponent + top_bit(x.m) + 1;
}

u64 fp_fract(const struct fp *f, u64 a)
{
	u64 below = fp_round(f, a, FP_FLOOR), most = fp_one(f) - 1;

	return fp_min_max(f, fp_add(f, a, below ^ fp_sign(f)), is_special(f, a) ? default_nan(f) : most, FP_LESS);
}

u64 fp_median(const struct fp *f, u64 a, u64 b, u64 c)
{
	u64 low = fp_min_max(f, a, b, FP_LESS), high = fp_min_max(f, a, b, FP_GREATER);

	if (fp_is_nan(f, a) || fp_is_nan(f, b) || fp_is_nan(f, c))
		return fp_min_max(f, low, c, FP_LESS);
	return fp_min_max(f, low, fp_min_max(f, high, c, FP_LESS), FP_GREATER);
}

u32 fp_class(const struct fp *f, u64 a)
{
	bool negative = a & fp_sign(f);

	if (fp_is_nan(f, a))
		return a >> (f->precision - 2) & 1 ? 1 << 1 : 1 << 0;
	if (is_inf(f, a))
		return negative ? 1 << 2 : 1 << 9;
	if (!magnitude(f, a))
		return negative ? 1 << 5 : 1 << 6;
	if (is_denormal(f, a))
		return negative ? 1 << 4 : 1 << 7;
	return negative ? 1 << 3 : 1 << 8;
}

u64 fp_clamp(const struct fp *f, u64 a)
{
	if (fp_is_nan(f, a) || a & fp_sign(f))
		return 0;
	return a > fp_one(f) ? fp_one(f) : a;
}

/* ---- exact sums of products ---- */

#define SUM_WORDS 11
#define SUM_LEAST (-300) /* the exponent of the lowest bit: two of the smallest numbers of fp32 multiplied */

/* A whole number of both signs, of 704 bits. */
struct sum {
	u64 words[SUM_WORDS];
};

static void sum_add(struct sum *s, bool negative, int exponent, u64 m)
{
	unsigned int at = (unsigned int)(exponent - SUM_LEAST);
	u128 shifted = (u128)m << at % 64, part, carry = 0;

	for (unsigned int i = at / 64; i < SUM_WORDS; i++) {
		part = (u64)shifted;
		shifted >>= 64;
		carry = negative ? s->words[i] - part - carry : s->words[i] + part + carry;
		s->words[i] = (u64)carry;
		carry = carry >> 64 & 1;
		if (!shifted && !carry)
			break;
	}
}

static void sum_negate(struct sum *s)
{
	bool carry = true;

	for (unsigned int i = 0; i < SUM_WORDS; i++) {
		s->words[i] = ~s->words[i] + carry;
		carry = carry && !s->words[i];
	}
}

static u64 sum_pack(const struct fp *f, struct sum *s)
{
	bool negative = s->words[SUM_WORDS - 1] >> 63;
	unsigned int top = SUM_WORDS - 1;
	u64 lost = 0;

	if (negative)
		sum_negate(s);
	while (top > 1 && !s->words[top])
		top--;
	for (unsigned int i = 0; i + 1 < top; i++)
		lost |= s->words[i];
	return pack(f, negative, SUM_LEAST + 64 * (int)(top - 1),
		    (u128)s->words[top] << 64 | s->words[top - 1] | (lost != 0));
}

u64 fp_dot(const struct fp *f, const u16 *a, const u16 *b, unsigned int n, u64 c)
{
	struct num x, y, z = unpack(&fp32, c);
	struct sum sum = { 0 };
	bool special = is_special(&fp32, c), any = z.m;
	u64 chain = c;

	for (unsigned int i = 0; i < n; i++) {
		x = unpack(f, a[i]);
		y = unpack(f, b[i]);
		special |= is_special(f, a[i]) || is_special(f, b[i]);
		any |= x.m && y.m;
		chain = fp_fma(&fp32, fp_convert(f, &fp32, a[i]), fp_convert(f, &fp32, b[i]), chain);
		if (!special)
			sum_add(&sum, x.negative != y.negative, x.exponent + y.exponent, x.m * y.m);
	}
	if (special || !any)
		return chain;
	sum_add(&sum, z.negative, z.exponent, z.m);
	return sum_pack(&fp32, &sum);
}
