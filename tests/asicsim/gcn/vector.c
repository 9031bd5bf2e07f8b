// SPDX-License-Identifier: GPL-2.0-only
/* Vector instructions: sources are registers or one value for all lanes, the operation is done and its result written
 * where EXEC is. */
#include "float.h"
#include "inst.h"

#define S16_LEAST (-0x8000LL)
#define S16_MOST  0x7fffLL
#define U16_MOST  0xffffLL
#define S32_LEAST (-0x80000000LL)
#define S32_MOST  0x7fffffffLL
#define U32_MOST  0xffffffffLL
#define SIGN16	  0x8000ULL
#define SIGN32	  0x80000000ULL
#define SIGN64	  0x8000000000000000ULL

/* ---- what the table's expressions call ---- */

static u64 from_signed(const struct fp *f, u64 a)
{
	s64 n = (s32)a;

	return fp_from_int(f, n < 0, (u64)(n < 0 ? -n : n));
}

static u64 reverse32(u64 x)
{
	u64 r = 0;

	for (unsigned int i = 0; i < 32; i++)
		r |= (x >> i & 1) << (31 - i);
	return r;
}

static s64 signed24(u64 x)
{
	return (s32)((u32)x << 8) >> 8;
}

static u64 signed_field(u64 x, u64 from, u64 width)
{
	u32 top = (u32)((s32)(u32)x >> from);

	return width ? (u64)((s32)(top << (32 - width)) >> (32 - width)) : 0;
}

static u64 min_of(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 max_of(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 min_signed(u64 a, u64 b)
{
	return (s32)a < (s32)b ? a : b;
}

static u64 max_signed(u64 a, u64 b)
{
	return (s32)a > (s32)b ? a : b;
}

static bool overflows(u64 sum, u64 a, u64 b)
{
	return ((a ^ sum) & (b ^ sum)) >> 63;
}

static u64 ones(u64 x)
{
	u64 n = 0;

	for (x = (u32)x; x; x &= x - 1)
		n++;
	return n;
}

static u64 permuted_byte(u64 bytes, u8 which)
{
	if (which < 8)
		return bytes >> 8 * which & 0xff;
	if (which < 12) /* the sign of every second byte */
		return bytes >> (16 * (which - 8) + 15) & 1 ? 0xff : 0;
	return which == 12 ? 0 : 0xff;
}

static u64 permute(u64 bytes, u64 selector)
{
	u64 r = 0;

	for (unsigned int i = 0; i < 4; i++)
		r |= permuted_byte(bytes, (u8)(selector >> 8 * i)) << 8 * i;
	return r;
}

static u64 leading_signs(u64 a)
{
	u32 x = (u32)a, top = x >> 31 ? ~x : x;

	return top ? (u32)__builtin_clz(top) : ~0u;
}

static u64 pair(u64 low, u64 high)
{
	return (u16)low | (u64)(u16)high << 16;
}

static s64 dot4(u64 a, u64 b)
{
	s64 sum = 0;

	for (unsigned int at = 0; at < 32; at += 8)
		sum += (s64)(s8)(a >> at) * (s8)(b >> at);
	return sum;
}

static u64 dot2(u64 a, u64 b, u64 c)
{
	const u16 x[] = { (u16)a, (u16)(a >> 16) }, y[] = { (u16)b, (u16)(b >> 16) };

	return fp_dot(&fp16, x, y, 2, c);
}

/* ---- the table ---- */

/* What a lane has: the letter is known when this is compiled. */
static inline __attribute__((always_inline)) u64 value_of(struct gcn_source s, char type, unsigned int l)
{
	if (type == 'm')
		return s.bits >> l & 1;
	return type == 'q' || type == 'd' ? s.low[l & s.mask] | (u64)s.high[l & s.mask] << 32 : s.low[l & s.mask];
}

#define OTHER(lane) value_of(x->source[0], 'u', (unsigned int)(lane))
#define HALVES_OF(at)                                                         \
	u64 i = (u16)(a >> (at)), j = (u16)(b >> (at)), k = (u16)(c >> (at)); \
	(void)i, (void)j, (void)k
#define BOTH(result)                \
	pair(({                     \
		     HALVES_OF(0);  \
		     (u64)(result); \
	     }),                    \
	     ({                     \
		     HALVES_OF(16); \
		     (u64)(result); \
	     }))
/* Sources and the mask are in variables, lest each lane reads them anew. */
#define M(format, code, name, types, result, condition)                                                    \
	static void do_##name(struct gcn_lanes *x)                                                         \
	{                                                                                                  \
		const struct gcn_source first = x->source[0], second = x->source[1], third = x->source[2]; \
		u64 left = x->active, mask = 0;                                                            \
                                                                                                           \
		for (unsigned int l = 0; left; l++, left >>= 1) {                                          \
			u64 a, b, c, r;                                                                    \
			bool bit = false;                                                                  \
                                                                                                           \
			if (!(left & 1))                                                                   \
				continue;                                                                  \
			a = value_of(first, types[1], l);                                                  \
			b = value_of(second, types[2], l);                                                 \
			c = value_of(third, types[3], l);                                                  \
			r = (result);                                                                      \
			bit = (condition);                                                                 \
			x->r[l] = r;                                                                       \
			mask |= (u64)bit << l;                                                             \
			(void)a, (void)b, (void)c;                                                         \
		}                                                                                          \
		x->mask = mask;                                                                            \
	}
#define V(format, code, name, types, result) M(format, code, name, types, result, false)
#define X(code, name, rows, products, element)
#include "vector_ops.h"
#undef M
#undef V
#undef X

#define CODES 0x2c0
static const struct gcn_op ops[VOP3P - VOP2 + 1][CODES] = {
#define M(format, code, ident, letters, result, condition) \
	[format - VOP2][code] = { .name = #ident, .types = letters, .vector = do_##ident, .has_mask = true },
#define V(format, code, ident, letters, result) \
	[format - VOP2][code] = { .name = #ident, .types = letters, .vector = do_##ident },
#define X(code, ident, rows, nr, element) \
	[VOP3P - VOP2][code] = { .name = #ident, .types = "----", .size = rows, .kind = element, .products = nr },
#include "vector_ops.h"
#undef M
#undef V
#undef X
};

const struct gcn_op *gcn_vector_op(enum gcn_format format, unsigned int code)
{
	return code < CODES && ops[format - VOP2][code].name ? &ops[format - VOP2][code] : NULL;
}

/* ---- sources ---- */

unsigned int gcn_vgpr(const struct gcn_wave *w, unsigned int number, unsigned int n)
{
	bool is_relative = w->mode & GCN_MODE_GPR_IDX && w->s[GCN_M0] >> (12 + n) & 1;

	return is_relative ? (number + (w->s[GCN_M0] & 0xff)) & 0xff : number & 0xff;
}

static char type_of(const struct gcn_inst *i, unsigned int n)
{
	char type = i->op->types[1 + n];

	return type ? type : '-';
}

static bool is_wide(char type)
{
	return type == 'q' || type == 'd';
}

static void source_is_register(struct gcn_wave *w, struct gcn_source *s, unsigned int number)
{
	*s = (struct gcn_source){ .low = w->v[number], .high = w->v[(number + 1) % GCN_VGPRS], .mask = GCN_LANES - 1 };
}

/* The same for all lanes. */
static void source_is_value(struct gcn_lanes *x, unsigned int n, u64 value)
{
	x->changed[n][0][0] = (u32)value;
	x->changed[n][1][0] = (u32)(value >> 32);
	x->source[n] = (struct gcn_source){ .low = x->changed[n][0], .high = x->changed[n][1] };
}

static u64 operand(struct gcn_wave *w, const struct gcn_inst *i, unsigned int n, char type)
{
	if (is_wide(type))
		return gcn_operand64(w, i, i->src[n], type == 'd');
	if (type == 'h' || type == 'p' || (type == 'x' && i->other_half >> n & 1))
		return gcn_operand16(w, i, i->src[n]);
	return gcn_operand32(w, i, i->src[n]);
}

static void source_find(struct gcn_wave *w, const struct gcn_inst *i, unsigned int n, char type)
{
	struct gcn_lanes *x = &w->env->lanes;

	if (type == '-')
		source_is_value(x, n, 0);
	else if (type == 'm')
		x->source[n] = (struct gcn_source){ .bits = gcn_s64(w, i->mask_src % GCN_SGPRS) };
	else if (type == 'D' || type == 'C')
		source_is_register(w, &x->source[n], gcn_vgpr(w, i->dst, 3));
	else if (type == 'A')
		source_is_register(w, &x->source[n], GCN_ACC + gcn_vgpr(w, i->src[n], n));
	else if (type == 'K')
		source_is_value(x, n, i->literal);
	else if (i->src[n] >= GCN_VGPR)
		source_is_register(w, &x->source[n], gcn_vgpr(w, i->src[n] - GCN_VGPR, n));
	else
		source_is_value(x, n, operand(w, i, n, type));
}

static u64 sdwa_part(u64 x, u32 which, bool is_signed)
{
	if (which < 4)
		return is_signed ? (u32)(s8)(x >> 8 * which) : (u8)(x >> 8 * which);
	if (which < 6)
		return is_signed ? (u32)(s16)(x >> 16 * (which - 4)) : (u16)(x >> 16 * (which - 4));
	return x;
}

static u64 with_sign(const struct gcn_inst *i, unsigned int n, u64 sign, u64 x)
{
	return (i->abs >> n & 1 ? x & ~sign : x) ^ (i->neg >> n & 1 ? sign : 0);
}

static u64 half_of(u64 x, u8 is_high)
{
	return (u16)(is_high & 1 ? x >> 16 : x);
}

/* Of two halves each may be either of the register, with the other sign. */
static u64 pair_of(const struct gcn_inst *i, unsigned int n, u64 x)
{
	return pair(half_of(x, i->half >> n) ^ (i->neg >> n & 1 ? SIGN16 : 0),
		    half_of(x, i->other_half >> n) ^ (i->abs >> n & 1 ? SIGN16 : 0));
}

/* What the instruction makes of a source before it computes. @flush: denormals are 0. */
static u64 changed(const struct gcn_inst *i, unsigned int n, char type, bool flush, u64 x)
{
	if (i->sdwa && n < 2)
		x = sdwa_part(x, i->w[1] >> (n ? 24 : 16) & 7, i->w[1] >> (n ? 27 : 19) & 1);
	switch (type) {
	case 't':
		return half_of(x, i->half >> n);
	case 'h':
		return with_sign(i, n, SIGN16, half_of(x, i->half >> n));
	case 'p':
		return pair_of(i, n, x);
	case 'x':
		if (i->other_half >> n & 1)
			x = fp_convert(&fp16, &fp32, half_of(x, i->half >> n));
		fallthrough;
	case 'f':
	case 'C':
	case 'e':
		return with_sign(i, n, SIGN32, flush ? fp_flush(&fp32, x) : x);
	case 'd':
		return with_sign(i, n, SIGN64, x);
	default:
		return x;
	}
}

/* Whether anything is made of it. */
static bool changes(const struct gcn_inst *i, unsigned int n, char type, bool flush)
{
	if (type == 't' || type == 'h' || type == 'p' || type == 'x' || (i->sdwa && n < 2 && type != '-'))
		return true;
	return flush || ((type == 'f' || type == 'd' || type == 'e') && (i->neg | i->abs) >> n & 1);
}

static void source_read(struct gcn_wave *w, const struct gcn_inst *i, unsigned int n)
{
	struct gcn_lanes *x = &w->env->lanes;
	struct gcn_source *s = &x->source[n];
	char type = type_of(i, n);
	bool flush = (type == 'f' || type == 'C' || type == 'x') && !(w->mode & GCN_MODE_DENORMALS_IN);
	u64 value;

	source_find(w, i, n, type);
	if (!changes(i, n, type, flush))
		return;
	for (unsigned int l = 0; l <= s->mask; l++) {
		value = s->low[l] | (is_wide(type) ? (u64)s->high[l] << 32 : 0);
		value = changed(i, n, type, flush, value);
		x->changed[n][0][l] = (u32)value;
		x->changed[n][1][l] = (u32)(value >> 32);
	}
	s->low = x->changed[n][0];
	s->high = x->changed[n][1];
}

/* ---- lanes that read others (DPP) ---- */

enum {
	DPP_QUAD_LAST = 0xff,
	DPP_ROW_SHL = 0x100,
	DPP_ROW_SHR = 0x110,
	DPP_ROW_ROR = 0x120,
	DPP_WAVE_SHL = 0x130,
	DPP_WAVE_SHR = 0x138,
	DPP_ROW_MIRROR = 0x140,
	DPP_ROW_HALF_MIRROR = 0x141,
	DPP_BCAST15 = 0x142,
	DPP_BCAST31 = 0x143
};

/* The lane that @l reads in its row of 16; -1: none. */
static int row_lane(unsigned int l, unsigned int control)
{
	int by = control & 15, at = l & 15, row = l & 48;

	switch (control & ~15u) {
	case DPP_ROW_SHL:
		return at + by < 16 ? row + at + by : -1;
	case DPP_ROW_SHR:
		return at >= by ? row + at - by : -1;
	default:
		return row + ((at - by) & 15);
	}
}

/* -1: none; -2: there is no such control */
static int dpp_lane(unsigned int l, unsigned int control)
{
	if (control <= DPP_QUAD_LAST)
		return (l & 60) + (control >> 2 * (l & 3) & 3);
	if (control > DPP_ROW_SHL && control <= DPP_ROW_ROR + 15 && control & 15)
		return row_lane(l, control);
	switch (control) {
	case DPP_WAVE_SHL:
		return l < 63 ? (int)l + 1 : -1;
	case DPP_WAVE_SHR:
		return (int)l - 1;
	case DPP_ROW_MIRROR:
		return (l & 48) + 15 - (l & 15);
	case DPP_ROW_HALF_MIRROR:
		return (l & 56) + 7 - (l & 7);
	case DPP_BCAST15:
		return l >= 16 ? (int)(l & 48) - 1 : -1;
	case DPP_BCAST31:
		return l >= 32 ? 31 : -1;
	}
	return -2;
}

/* Moves the first source between lanes; lanes that get nothing lose their bit of *write. */
static void move_lanes(struct gcn_wave *w, const struct gcn_inst *i, struct gcn_lanes *x, u64 *write)
{
	u32 dpp = i->w[1], moved[GCN_LANES] = { 0 };
	int lane;

	for (unsigned int l = 0; l < GCN_LANES; l++) {
		lane = dpp_lane(l, dpp >> 8 & 0x1ff);
		if (lane == -2)
			return gcn_stop(w, "no DPP control has number", dpp >> 8 & 0x1ff);
		if (lane >= 0 && x->exec >> lane & 1)
			moved[l] = x->source[0].low[(u32)lane & x->source[0].mask];
		else if (!(dpp >> 19 & 1))
			*write &= ~(1ULL << l);
		if (!(dpp >> (24 + l / 4 % 4) & 1) || !(dpp >> (28 + l / 16) & 1))
			*write &= ~(1ULL << l);
	}
	memcpy(x->changed[0][0], moved, sizeof(moved));
	x->source[0] = (struct gcn_source){ .low = x->changed[0][0], .high = x->changed[0][1], .mask = GCN_LANES - 1 };
}

/* ---- results ---- */

static u32 sdwa_result(const struct gcn_inst *i, u32 old, u32 x)
{
	u32 which = i->w[1] >> 8 & 7, unused = i->w[1] >> 11 & 3, mask, at;

	if (which >= 6)
		return x;
	at = which < 4 ? 8 * which : 16 * (which - 4);
	mask = (which < 4 ? 0xffu : 0xffffu) << at;
	x = x << at & mask;
	if (unused == 1 && x >> (at + (which < 4 ? 7 : 15)) & 1)
		x |= ~mask << at << 1;
	return unused == 2 ? (old & ~mask) | x : x;
}

static u64 clamped(char type, u64 x)
{
	switch (type) {
	case 'f':
		return fp_clamp(&fp32, x);
	case 'd':
		return fp_clamp(&fp64, x);
	case 'P':
		return pair(fp_clamp(&fp16, (u16)x), fp_clamp(&fp16, (u16)(x >> 16)));
	case 'U':
		return x >> 63 ? 0 : min_of(x, 0xffffffff);
	default:
		return fp_clamp(&fp16, (u16)x);
	}
}

/* What an instruction asks for that is not there for its kind of result. */
static bool cannot_clamp(const struct gcn_inst *i)
{
	return i->clamp && !strchr("fdhPUlL", i->op->types[0]);
}

/* Denormals and ranges, as the mode and the instruction want them. */
static void finish(const struct gcn_wave *w, const struct gcn_inst *i, struct gcn_lanes *x)
{
	char type = i->op->types[0];
	bool flush = type == 'f' && !(w->mode & GCN_MODE_DENORMALS_OUT);

	for (unsigned int l = 0; l < GCN_LANES && (flush || i->clamp); l++) {
		if (flush)
			x->r[l] = fp_flush(&fp32, x->r[l]);
		if (i->clamp)
			x->r[l] = clamped(type, x->r[l]);
	}
}

/* All lanes, most of the time. @shift: 32 writes the results' high words */
static inline __attribute__((always_inline)) void write_words(u32 *to, const u64 *r, u64 write, unsigned int shift)
{
	if (write == ~0ULL) {
		for (unsigned int l = 0; l < GCN_LANES; l++)
			to[l] = (u32)(r[l] >> shift);
		return;
	}
	for (unsigned int l = 0; write; l++, write >>= 1)
		if (write & 1)
			to[l] = (u32)(r[l] >> shift);
}

static void write_registers(struct gcn_wave *w, const struct gcn_inst *i, unsigned int number, const u64 *r, u64 write)
{
	u32 *to = w->v[number];

	if (!i->sdwa)
		return write_words(to, r, write, 0);
	for (unsigned int l = 0; write; l++, write >>= 1)
		if (write & 1)
			to[l] = sdwa_result(i, to[l], (u32)r[l]);
}

static void write_high(struct gcn_wave *w, unsigned int number, const u64 *r, u64 write)
{
	write_words(w->v[number], r, write, 32);
}

/* One half of the registers; the other one stays, or becomes 0. */
static void write_half(struct gcn_wave *w, const struct gcn_inst *i, bool is_high, bool stays, const u64 *r, u64 write)
{
	u32 *to = w->v[gcn_vgpr(w, i->dst, 3)], at = is_high ? 16 : 0;

	for (unsigned int l = 0; write; l++, write >>= 1)
		if (write & 1)
			to[l] = (stays ? to[l] & ~(0xffffu << at) : 0) | (u32)(u16)r[l] << at;
}

static void write_halves(struct gcn_wave *w, const struct gcn_inst *i, u64 *r, u64 write)
{
	bool is_high = i->op->types[0] == 'L' || i->half >> 3 & 1;

	if (!i->sdwa)
		return write_half(w, i, is_high, is_high || i->op->types[0] != 'h', r, write);
	for (unsigned int l = 0; l < GCN_LANES; l++)
		r[l] = (u16)r[l];
	write_registers(w, i, gcn_vgpr(w, i->dst, 3), r, write);
}

static void write_result(struct gcn_wave *w, const struct gcn_inst *i, struct gcn_lanes *x, u64 write)
{
	unsigned int dst = gcn_vgpr(w, i->dst, 3);
	char type = i->op->types[0];

	switch (type) {
	case '-':
		break;
	case 'X':
		gcn_set_s64(w, GCN_EXEC, x->mask & x->exec);
		break;
	case 's':
		w->s[i->dst % GCN_SGPRS] = (u32)x->r[0];
		break;
	case 'w':
		write_registers(w, i, i->dst, x->r, ~0ULL);
		break;
	case 'A':
		write_registers(w, i, GCN_ACC + dst, x->r, write);
		break;
	case 'h':
	case 'k':
	case 'l':
	case 'L':
		write_halves(w, i, x->r, write);
		break;
	default:
		write_registers(w, i, dst, x->r, write);
	}
	if (is_wide(type))
		write_high(w, dst + 1, x->r, write);
	else if (type == 'S')
		write_high(w, gcn_vgpr(w, i->src[0], 0), x->r, write);
	if (i->op->has_mask)
		gcn_set_s64(w, i->mask_dst % GCN_SGPRS, x->mask & x->exec);
}

/* Which lanes compute: one for a scalar result, and all for one that ignores EXEC. */
static u64 active_lanes(const struct gcn_inst *i, u64 write)
{
	return i->op->types[0] == 's' ? 1 : i->op->types[0] == 'w' ? ~0ULL : write;
}

void gcn_vector(struct gcn_wave *w, const struct gcn_inst *i)
{
	struct gcn_lanes *x = &w->env->lanes;
	u64 write;

	if (!i->op->vector)
		return gcn_matrix(w, i);
	if (cannot_clamp(i))
		return gcn_stop(w, "no such form of the instruction", i->w[0]);
	x->mask = 0;
	x->vcc = gcn_s64(w, GCN_VCC);
	x->exec = write = gcn_s64(w, GCN_EXEC);
	for (unsigned int n = 0; n < 3; n++)
		source_read(w, i, n);
	if (i->dpp)
		move_lanes(w, i, x, &write);
	if (w->state == GCN_STOPPED)
		return;
	x->active = active_lanes(i, write);
	i->op->vector(x);
	finish(w, i, x);
	write_result(w, i, x, write);
}
