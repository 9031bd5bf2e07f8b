// SPDX-License-Identifier: GPL-2.0-only
/* From dwords to an instruction: its format, and where each format has its fields. */
#include "inst.h"

static u32 bits(u32 word, unsigned int from, unsigned int count)
{
	return word >> from & ((1u << count) - 1);
}

static enum gcn_format format_of_vector(u32 w)
{
	u32 op = bits(w, 25, 6);

	return op == 0x3f ? VOP1 : op == 0x3e ? VOPC : VOP2;
}

static enum gcn_format format_of_scalar(u32 w)
{
	switch (w >> 23) {
	case 0x17d:
		return SOP1;
	case 0x17e:
		return SOPC;
	case 0x17f:
		return SOPP;
	}
	return w >> 28 == 0xb ? SOPK : SOP2;
}

/* GCN_FORMATS: none that is known here */
static enum gcn_format format_of(u32 w)
{
	if (!(w >> 31))
		return format_of_vector(w);
	if (w >> 30 == 2)
		return format_of_scalar(w);
	switch (w >> 26) {
	case 0x30:
		return SMEM;
	case 0x34:
		return w >> 23 == 0x1a7 ? VOP3P : VOP3;
	case 0x36:
		return DS;
	case 0x37:
		return FLAT;
	case 0x38:
		return MUBUF;
	}
	return GCN_FORMATS;
}

static unsigned int code_of(enum gcn_format format, u32 w)
{
	switch (format) {
	case SOP2:
		return bits(w, 23, 7);
	case SOPK:
		return bits(w, 23, 5);
	case SOP1:
		return bits(w, 8, 8);
	case SOPC:
	case SOPP:
	case VOP3P:
		return bits(w, 16, 7);
	case SMEM:
		return bits(w, 18, 8);
	case VOP2:
		return bits(w, 25, 6);
	case VOP1:
		return bits(w, 9, 8);
	case VOPC:
		return bits(w, 17, 8);
	case VOP3:
		return bits(w, 16, 10);
	case DS:
		return bits(w, 17, 8);
	default:
		return bits(w, 18, 7);
	}
}

const char *gcn_format_name(enum gcn_format format)
{
	static const char *const names[] = { "SOP2", "SOPK", "SOP1",  "SOPC", "SOPP", "SMEM",  "VOP2",	 "VOP1",
					     "VOPC", "VOP3", "VOP3P", "DS",   "FLAT", "MUBUF", "unknown" };

	return names[format];
}

#define SETREG_IMM 0x14 /* of SOPK: its value is a literal */

/* v_madmk and v_madak: one source is a constant. */
static bool has_constant(u32 w)
{
	u32 code = code_of(VOP2, w);

	return code == 0x17 || code == 0x18;
}

bool gcn_is_long(u32 w)
{
	enum gcn_format format = format_of(w);

	switch (format) {
	case SOP2:
	case SOPC:
		return bits(w, 0, 8) == GCN_LITERAL || bits(w, 8, 8) == GCN_LITERAL;
	case SOP1:
		return bits(w, 0, 8) == GCN_LITERAL;
	case SOPK:
		return code_of(format, w) == SETREG_IMM;
	case SOPP:
	case GCN_FORMATS:
		return false;
	case VOP1:
	case VOP2:
	case VOPC:
		return (format == VOP2 && has_constant(w)) || bits(w, 0, 9) == GCN_LITERAL ||
		       bits(w, 0, 9) == GCN_SDWA || bits(w, 0, 9) == GCN_DPP;
	default:
		return true;
	}
}

/* VOP3 numbers those of the short formats after its own scheme. */
static const struct gcn_op *vop3_op(unsigned int code)
{
	if (code < 0x100)
		return gcn_vector_op(VOPC, code);
	if (code < 0x140)
		return gcn_vector_op(VOP2, code - 0x100);
	if (code < 0x1c0)
		return gcn_vector_op(VOP1, code - 0x140);
	return gcn_vector_op(VOP3, code);
}

static const struct gcn_op *op_of(enum gcn_format format, unsigned int code)
{
	if (format <= SOPP)
		return gcn_scalar_op(format, code);
	if (format == VOP3)
		return vop3_op(code);
	if (format >= VOP2 && format <= VOP3P)
		return gcn_vector_op(format, code);
	return format < GCN_FORMATS ? gcn_memory_op(format, code) : NULL;
}

static void decode_sdwa(struct gcn_inst *i)
{
	u32 w = i->w[1];

	i->sdwa = true;
	i->src[0] = bits(w, 0, 8) + (bits(w, 23, 1) ? 0 : GCN_VGPR);
	if (bits(w, 31, 1))
		i->src[1] -= GCN_VGPR;
	i->neg = bits(w, 20, 1) | bits(w, 28, 1) << 1;
	i->abs = bits(w, 21, 1) | bits(w, 29, 1) << 1;
	if (i->format == VOPC && bits(w, 15, 1))
		i->mask_dst = bits(w, 8, 7);
	/* The result's modifiers: clamp and omod. */
	if (i->format != VOPC && bits(w, 13, 3))
		i->op = NULL;
}

static void decode_dpp(struct gcn_inst *i)
{
	i->dpp = true;
	i->src[0] = bits(i->w[1], 0, 8) + GCN_VGPR;
	i->abs = bits(i->w[1], 21, 1) | bits(i->w[1], 23, 1) << 1;
	i->neg = bits(i->w[1], 20, 1) | bits(i->w[1], 22, 1) << 1;
	if (i->format == VOPC || (i->op && i->op->has_mask))
		i->op = NULL;
}

static void decode_vop(struct gcn_inst *i)
{
	i->dst = bits(i->w[0], 17, 8);
	i->src[0] = bits(i->w[0], 0, 9);
	i->src[1] = bits(i->w[0], 9, 8) + GCN_VGPR;
	i->mask_dst = i->mask_src = GCN_VCC;
	if (i->src[0] == GCN_SDWA)
		decode_sdwa(i);
	else if (i->src[0] == GCN_DPP)
		decode_dpp(i);
}

/* Two halves, or one of them. */
static void decode_vop3p(struct gcn_inst *i)
{
	u32 w = i->w[0];

	if (i->op && !i->op->vector)
		return;
	i->neg = bits(i->w[1], 29, 3);
	i->abs = bits(w, 8, 3);
	i->half = bits(w, 11, 3);
	i->other_half = bits(i->w[1], 27, 2) | bits(w, 14, 1) << 2;
	i->clamp = bits(w, 15, 1);
}

/* Forms of VOP3 that there are: which half, of 16 bits; within a range, of numbers and of a few others. */
static bool vop3_is_known(const struct gcn_inst *i, bool is_compare)
{
	const char *types = i->op->types;
	bool can_clamp = !is_compare && strchr("fdhU", types[0]), has_halves = strchr("th", types[1]);

	return !bits(i->w[1], 27, 2) && (!i->clamp || can_clamp) && (!i->half || has_halves);
}

static void decode_vop3(struct gcn_inst *i)
{
	u32 w = i->w[0];
	bool is_compare = i->format == VOP3 && bits(w, 16, 10) < 0x100, has_mask = i->op && i->op->has_mask;

	i->dst = bits(w, 0, 8);
	i->mask_dst = is_compare ? i->dst : bits(w, 8, 7);
	for (unsigned int n = 0; n < 3; n++)
		i->src[n] = bits(i->w[1], 9 * n, 9);
	i->mask_src = i->src[2];
	if (i->format == VOP3P)
		return decode_vop3p(i);
	i->neg = bits(i->w[1], 29, 3);
	i->abs = has_mask && !is_compare ? 0 : bits(w, 8, 3);
	i->half = has_mask && !is_compare ? 0 : bits(w, 11, 4);
	i->clamp = bits(w, 15, 1);
	if (i->op && !vop3_is_known(i, is_compare))
		i->op = NULL;
}

void gcn_decode(struct gcn_inst *i, u32 first, u32 second)
{
	memset(i, 0, sizeof(*i));
	i->w[0] = first;
	i->w[1] = i->literal = second;
	i->format = format_of(first);
	i->length = gcn_is_long(first) ? 2 : 1;
	i->op = op_of(i->format, code_of(i->format, first));
	switch (i->format) {
	case SOP2:
	case SOPK:
	case SOP1:
	case SOPC:
	case SOPP:
		i->dst = bits(first, 16, 7);
		i->src[0] = bits(first, 0, 8);
		i->src[1] = bits(first, 8, 8);
		break;
	case VOP2:
	case VOP1:
	case VOPC:
		decode_vop(i);
		break;
	case VOP3:
	case VOP3P:
		decode_vop3(i);
		break;
	default:
		break;
	}
}
