/* SPDX-License-Identifier: GPL-2.0-only */
/* An instruction: its decoding, and the tables of those that there are, one for each format. */
#ifndef GCN_INST_H
#define GCN_INST_H

#include "gcn.h"

enum gcn_format { SOP2, SOPK, SOP1, SOPC, SOPP, SMEM, VOP2, VOP1, VOPC, VOP3, VOP3P, DS, FLAT, MUBUF, GCN_FORMATS };

enum { GCN_LITERAL = 255, GCN_SDWA = 249, GCN_DPP = 250, GCN_VGPR = 256 };

/* What matrices consist of: numbers of 32 and of 16 bits, whole numbers of 8 bits, the high halves of numbers. */
enum gcn_element { FLOATS, HALVES, BYTES, BRAINS };

struct gcn_inst;

/*
 * @types: of the result and of the sources, a letter for each:
 * u, q: whole number of 32 or 64 bits; f, d: number with a fraction, whose sign has modifiers; e: as f, with denormals
 * whatever the mode says; t, h: the same of 16 bits; p: two of these; x: f or h, as the instruction says; D, C: what
 * the result's register holds, the latter a number; K: the literal; m: a mask's bit; A: accumulation register; -: none.
 * Of results besides: U: u, which stays at the ends of its range if the instruction says so; k, l, L: the half that the
 * instruction says, the low or the high one, the other half stays; P: two halves that are numbers; s: a scalar
 * register; w: a vector register whatever EXEC says; S: the result's register and that of the first source; X: EXEC is the mask
 */
struct gcn_op {
	const char *name;
	const char *types;
	u64 (*scalar)(struct gcn_wave *w, const struct gcn_inst *inst, u64 a, u64 b);
	void (*vector)(struct gcn_lanes *x);
	void (*memory)(struct gcn_wave *w, const struct gcn_inst *inst);
	bool has_mask; /* vector: the mask is a result, too */
	u8 size;       /* memory: bytes of a lane or of the wave; matrices: rows */
	u8 kind;       /* memory: what is done; matrices: what of */
	u8 products;   /* matrices: for an element of the result */
};

struct gcn_inst {
	const struct gcn_op *op;
	enum gcn_format format;
	unsigned int length; /* dwords */
	u32 w[2];	     /* as in memory */
	u32 literal;
	u16 dst, src[3];
	u16 mask_dst, mask_src; /* scalar registers */
	u8 neg, abs;		/* bits by source; of pairs the sign's change of the low and of the high half */
	u8 half, other_half;	/* bits by source and (3) result: the high half is meant; of pairs the second one */
	bool clamp, sdwa, dpp;
};

/* What the dwords say, of which the second may not be there; the name is NULL of what there is not. */
void gcn_decode(struct gcn_inst *inst, u32 first, u32 second);
/* Whether the second dword belongs to it. */
bool gcn_is_long(u32 first);
const char *gcn_format_name(enum gcn_format format);

/* ---- scalar.c, vector.c, matrix.c, memory.c ---- */

void gcn_scalar(struct gcn_wave *w, const struct gcn_inst *inst);
void gcn_vector(struct gcn_wave *w, const struct gcn_inst *inst);
void gcn_matrix(struct gcn_wave *w, const struct gcn_inst *inst);
/* A number with a fraction is one of 16 bits. */
u32 gcn_operand16(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int number);
u32 gcn_operand32(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int number);
u64 gcn_operand64(struct gcn_wave *w, const struct gcn_inst *inst, unsigned int number, bool is_double);
void gcn_smem(struct gcn_wave *w, const struct gcn_inst *inst);
void gcn_flat(struct gcn_wave *w, const struct gcn_inst *inst);
void gcn_mubuf(struct gcn_wave *w, const struct gcn_inst *inst);
void gcn_ds(struct gcn_wave *w, const struct gcn_inst *inst);
/* The number of a vector register, of source @n or (3) the result, as the relative mode moves it. */
unsigned int gcn_vgpr(const struct gcn_wave *w, unsigned int number, unsigned int n);

/* NULL: there is none of that number. */
const struct gcn_op *gcn_scalar_op(enum gcn_format format, unsigned int code);
const struct gcn_op *gcn_vector_op(enum gcn_format format, unsigned int code);
const struct gcn_op *gcn_memory_op(enum gcn_format format, unsigned int code);
#endif
