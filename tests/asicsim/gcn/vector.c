// SPDX-License-Identifier: GPL-2.0-only
/* Vector instructions: sources are spread over the lanes, the operation is done for all, the result goes where EXEC is.
 */
#include "float.h"
#include "inst.h"

#define S32_LEAST (-0x80000000LL)
#define S32_MOST  0x7fffffffLL
#define U32_MOST  0xffffffffLL
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

/* ---- the table ---- */

#define M(format, code, name, types, result, condition)               \
	static void do_##name(struct gcn_lanes *x)                    \
	{                                                             \
		for (unsigned int l = 0; l < GCN_LANES; l++) {        \
			u64 a = x->a[l], b = x->b[l], c = x->c[l], r; \
			bool bit = false;                             \
                                                                      \
			r = (result);                                 \
			bit = (condition);                            \
			x->r[l] = r;                                  \
			x->mask |= (u64)bit << l;                     \
			(void)a, (void)b, (void)c;                    \
		}                                                     \
	}
#define V(format, code, name, types, result) M(format, code, name, types, result, false)
#include "vector_ops.h"
#undef M
#undef V

#define CODES 0x2a0
static const struct gcn_op ops[VOP3P - VOP2 + 1][CODES] = {
#define M(format, code, ident, letters, result, condition) \
	[format - VOP2][code] = { .name = #ident, .types = letters, .vector = do_##ident, .has_mask = true },
#define V(format, code, ident, letters, result) \
	[format - VOP2][code] = { .name = #ident, .types = letters, .vector = do_##ident },
#include "vector_ops.h"
#undef M
#undef V
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

static void spread(u64 *to, u64 x)
{
	for (unsigned int l = 0; l < GCN_LANES; l++)
		to[l] = x;
}

static void read_registers(struct gcn_wave *w, unsigned int number, bool wide, u64 *to)
{
	for (unsigned int l = 0; l < GCN_LANES; l++)
		to[l] = w->v[number][l] | (wide ? (u64)w->v[number + 1][l] << 32 : 0);
}

static void read_mask(struct gcn_wave *w, unsigned int number, u64 *to)
{
	u64 mask = gcn_s64(w, number % GCN_SGPRS);

	for (unsigned int l = 0; l < GCN_LANES; l++)
		to[l] = mask >> l & 1;
}

static u64 sdwa_part(u64 x, u32 which, bool is_signed)
{
	if (which < 4)
		return is_signed ? (u32)(s8)(x >> 8 * which) : (u8)(x >> 8 * which);
	if (which < 6)
		return is_signed ? (u32)(s16)(x >> 16 * (which - 4)) : (u16)(x >> 16 * (which - 4));
	return x;
}

static void take_sdwa_parts(const struct gcn_inst *i, unsigned int n, u64 *x)
{
	u32 control = i->w[1] >> (n ? 24 : 16);

	for (unsigned int l = 0; l < GCN_LANES; l++)
		x[l] = sdwa_part(x[l], control & 7, control >> 3 & 1);
}

static void modify(const struct gcn_inst *i, unsigned int n, u64 sign, u64 *x)
{
	bool abs = i->abs >> n & 1, neg = i->neg >> n & 1;

	for (unsigned int l = 0; l < GCN_LANES && (abs || neg); l++)
		x[l] = (abs ? x[l] & ~sign : x[l]) ^ (neg ? sign : 0);
}

static void read_source(struct gcn_wave *w, const struct gcn_inst *i, unsigned int n, u64 *to)
{
	char type = type_of(i, n);
	bool wide = type == 'q' || type == 'd';

	if (type == '-')
		spread(to, 0);
	else if (type == 'm')
		read_mask(w, i->mask_src, to);
	else if (type == 'D')
		read_registers(w, gcn_vgpr(w, i->dst, 3), false, to);
	else if (type == 'A')
		read_registers(w, GCN_ACC + gcn_vgpr(w, i->src[n], n), false, to);
	else if (i->src[n] >= GCN_VGPR)
		read_registers(w, gcn_vgpr(w, i->src[n] - GCN_VGPR, n), wide, to);
	else
		spread(to, wide ? gcn_operand64(w, i, i->src[n], type == 'd') : gcn_operand32(w, i, i->src[n]));
	if (i->sdwa && n < 2 && type != '-')
		take_sdwa_parts(i, n, to);
	if (type == 'f' || type == 'd')
		modify(i, n, wide ? SIGN64 : SIGN32, to);
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
	u32 dpp = i->w[1];
	u64 from[GCN_LANES];
	int lane;

	memcpy(from, x->a, sizeof(from));
	for (unsigned int l = 0; l < GCN_LANES; l++) {
		lane = dpp_lane(l, dpp >> 8 & 0x1ff);
		if (lane == -2)
			return gcn_stop(w, "no DPP control has number", dpp >> 8 & 0x1ff);
		if (lane >= 0 && x->exec >> lane & 1)
			x->a[l] = from[lane];
		else if (dpp >> 19 & 1)
			x->a[l] = 0;
		else
			*write &= ~(1ULL << l);
		if (!(dpp >> (24 + l / 4 % 4) & 1) || !(dpp >> (28 + l / 16) & 1))
			*write &= ~(1ULL << l);
	}
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

static void write_registers(struct gcn_wave *w, const struct gcn_inst *i, unsigned int number, const u64 *r, u64 write)
{
	bool wide = i->op->types[0] == 'q';

	for (unsigned int l = 0; l < GCN_LANES; l++) {
		if (!(write >> l & 1))
			continue;
		w->v[number][l] = i->sdwa ? sdwa_result(i, w->v[number][l], (u32)r[l]) : (u32)r[l];
		if (wide)
			w->v[number + 1][l] = (u32)(r[l] >> 32);
	}
}

static void write_result(struct gcn_wave *w, const struct gcn_inst *i, const struct gcn_lanes *x, u64 write)
{
	switch (i->op->types[0]) {
	case '-':
		break;
	case 's':
		w->s[i->dst % GCN_SGPRS] = (u32)x->r[0];
		break;
	case 'w':
		write_registers(w, i, i->dst, x->r, ~0ULL);
		break;
	case 'A':
		write_registers(w, i, GCN_ACC + gcn_vgpr(w, i->dst, 3), x->r, write);
		break;
	default:
		write_registers(w, i, gcn_vgpr(w, i->dst, 3), x->r, write);
	}
	if (i->op->has_mask)
		gcn_set_s64(w, i->mask_dst % GCN_SGPRS, x->mask & x->exec);
}

void gcn_vector(struct gcn_wave *w, const struct gcn_inst *i)
{
	struct gcn_lanes *x = &w->env->lanes;
	u64 write;

	x->mask = 0;
	x->vcc = gcn_s64(w, GCN_VCC);
	x->exec = write = gcn_s64(w, GCN_EXEC);
	read_source(w, i, 0, x->a);
	read_source(w, i, 1, x->b);
	read_source(w, i, 2, x->c);
	if (i->dpp)
		move_lanes(w, i, x, &write);
	if (w->state == GCN_STOPPED)
		return;
	i->op->vector(x);
	write_result(w, i, x, write);
}
