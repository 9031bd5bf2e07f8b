// SPDX-License-Identifier: GPL-2.0-only
/* Scalar instructions, and the operands that scalar and vector instructions have in common. */
#include "inst.h"

/* Numbers of operands behind the registers: whole numbers, numbers with a fraction, and what the wave knows. */
enum { INT_0 = 128, INT_LAST = 192, INT_NEGATIVE_LAST = 208, FLOAT_FIRST = 240, FLOAT_LAST = 248 };
enum { SHARED_BASE = 235, PRIVATE_BASE = 237, VCCZ = 251, EXECZ = 252, SCC = 253 };

/* 0.5, -0.5, 1, -1, 2, -2, 4, -4, and 1 by 2 pi */
static const u32 floats[] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
			      0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
static const u64 doubles[] = { 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
			       0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
			       0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882 };

u32 gcn_operand32(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int n)
{
	if (n < GCN_SGPRS)
		return w->s[n];
	if (n <= INT_LAST)
		return n - INT_0;
	if (n <= INT_NEGATIVE_LAST)
		return INT_LAST - n;
	if (n >= FLOAT_FIRST && n <= FLOAT_LAST)
		return floats[n - FLOAT_FIRST];
	switch (n) {
	case VCCZ:
		return !gcn_s64(w, GCN_VCC);
	case EXECZ:
		return !gcn_s64(w, GCN_EXEC);
	case SCC:
		return w->scc;
	case GCN_LITERAL:
		return inst->literal;
	}
	gcn_stop(w, "no operand has number", n);
	return 0;
}

u32 gcn_operand16(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int n)
{
	static const u16 halves[] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118 };

	return n >= FLOAT_FIRST && n <= FLOAT_LAST ? halves[n - FLOAT_FIRST] : gcn_operand32(w, inst, n);
}

u64 gcn_operand64(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int n, bool is_double)
{
	if (n < GCN_SGPRS)
		return gcn_s64(w, n);
	if (n <= INT_LAST)
		return n - INT_0;
	if (n <= INT_NEGATIVE_LAST)
		return (u64)INT_LAST - n;
	if (n >= FLOAT_FIRST && n <= FLOAT_LAST)
		return doubles[n - FLOAT_FIRST];
	if (n == SHARED_BASE)
		return (u64)(w->env->sh_mem_bases >> 16) << 48;
	if (n == PRIVATE_BASE)
		return (u64)(w->env->sh_mem_bases & 0xffff) << 48;
	if (n == GCN_LITERAL && is_double)
		return (u64)inst->literal << 32;
	/* It has 32 zero bits more. What those that take a signed number make of it has not been seen. */
	if (n == GCN_LITERAL && (!(inst->literal >> 31) || !strstr(inst->op->name, "_i64")))
		return inst->literal;
	gcn_stop(w, "no operand of 64 bits has number", n);
	return 0;
}

/* ---- what the table's expressions call ---- */

static u64 field(u64 x, u64 from, u64 width)
{
	return width >= 64 ? x >> from : x >> from & ((1ULL << width) - 1);
}

static u64 signed_field(u64 x, u64 from, u64 width)
{
	s64 top = (s64)x >> from;

	return width && width < 64 ? (u64)((s64)((u64)top << (64 - width)) >> (64 - width)) : width ? (u64)top : 0;
}

static u64 reverse(u64 x)
{
	u64 r = 0;

	for (unsigned int i = 0; i < 64; i++)
		r |= (x >> i & 1) << (63 - i);
	return r;
}

static u64 count_ones(u64 x)
{
	u64 n = 0;

	for (; x; x &= x - 1)
		n++;
	return n;
}

static u64 lowest(u64 x)
{
	return __builtin_ctzll(x);
}

static u64 highest(u64 x)
{
	return 63 - __builtin_clzll(x);
}

static u64 set_hwreg(struct gcn_wave *w, u64 simm, u64 value)
{
	gcn_set_hwreg(w, (u32)simm, (u32)value);
	return 0;
}

static u64 jump(struct gcn_wave *w, u64 to)
{
	u64 from = w->pc;

	w->pc = to;
	return from;
}

static u64 branch(struct gcn_wave *w, const struct gcn_inst *inst, bool taken)
{
	if (taken)
		w->pc += (u64)(s64)(s16)inst->w[0] * 4;
	return 0;
}

static u64 set_exec(struct gcn_wave *w, u64 exec)
{
	u64 before = gcn_s64(w, GCN_EXEC);

	gcn_set_s64(w, GCN_EXEC, exec);
	return before;
}

static u64 relative(struct gcn_wave *w, u64 from)
{
	u64 n = from + w->s[GCN_M0];

	if (n + 1 < GCN_TTMP)
		return gcn_s64(w, (unsigned int)n);
	return 0;
}

static u64 set_relative(struct gcn_wave *w, u64 to, u64 x)
{
	u64 n = to + w->s[GCN_M0];

	if (n + 1 < GCN_TTMP)
		gcn_set_s64(w, (unsigned int)n, x);
	return 0;
}

/* Vector instructions are left out until it is off. */
static u64 set_vskip(struct gcn_wave *w, u64 on)
{
	w->mode = on ? w->mode | GCN_MODE_VSKIP : w->mode & ~(u32)GCN_MODE_VSKIP;
	return 0;
}

static u64 index_on(struct gcn_wave *w, u64 index, u64 which)
{
	w->s[GCN_M0] = (u32)((index & 0xff) | (which & 15) << 12);
	w->mode |= GCN_MODE_GPR_IDX;
	return 0;
}

/* ---- the table ---- */

#define KEEP w->scc
#define S(format, code, name, types, result, condition)                                     \
	static u64 do_##name(struct gcn_wave *w, const struct gcn_inst *inst, u64 a, u64 b) \
	{                                                                                   \
		u64 r = (result);                                                           \
                                                                                            \
		(void)inst, (void)a, (void)b;                                               \
		w->scc = (condition);                                                       \
		return r;                                                                   \
	}
#include "scalar_ops.h"
#undef S

#define CODES 0x100
static const struct gcn_op ops[SOPP + 1][CODES] = {
#define S(format, code, ident, letters, result, condition) \
	[format][code] = { .name = #ident, .types = letters, .scalar = do_##ident },
#include "scalar_ops.h"
#undef S
};

const struct gcn_op *gcn_scalar_op(enum gcn_format format, unsigned int code)
{
	return code < CODES && ops[format][code].name ? &ops[format][code] : NULL;
}

static u64 source(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int n)
{
	char type = inst->op->types[1 + n];

	if (type == '-')
		return 0;
	if (inst->format == SOPK)
		return n ? (u32)(s16)inst->w[0] : w->s[inst->dst];
	return type == 'q' ? gcn_operand64(w, inst, inst->src[n], false) : gcn_operand32(w, inst, inst->src[n]);
}

void gcn_scalar(struct gcn_wave *w, const struct gcn_inst *inst)
{
	bool scc = w->scc;
	u64 a = source(w, inst, 0), b = source(w, inst, 1), r;

	if (w->state == GCN_STOPPED)
		return;
	r = inst->op->scalar(w, inst, a, b);
	if (w->state == GCN_STOPPED)
		w->scc = scc;
	else if (inst->op->types[0] == 'q')
		gcn_set_s64(w, inst->dst, r);
	else if (inst->op->types[0] == 'u')
		w->s[inst->dst] = (u32)r;
}
