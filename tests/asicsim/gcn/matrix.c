// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matrix instructions (MFMA): blocks of C + A * B, whose elements are spread over the lanes, whatever EXEC says.
 * Products of 16 bits are summed exactly with an element of C, four at a time (of bf16 two), and rounded once, as
 * MMA-Sim found it on an MI100 (arXiv 2511.10909); those of 32 bits are fused one by one.
 */
#include "float.h"
#include "inst.h"

/* Elements of a row of A, or of a column of B, that a lane has. */
static const u8 per_lane[] = { [FLOATS] = 1, [HALVES] = 4, [BYTES] = 4, [BRAINS] = 2 };

struct matrix {
	const struct gcn_op *op;
	unsigned int a, b;   /* registers */
	unsigned int blocks; /* of results */
};

/* The same element of the result: its row, its column is the lane's, and its block. */
static void place(unsigned int rows, unsigned int r, unsigned int l, unsigned int *row, unsigned int *block)
{
	switch (rows) {
	case 32:
		*row = 8 * (r % 16 / 4) + 4 * (l / 32) + r % 4;
		*block = r / 16;
		return;
	case 16:
		*row = 4 * (l / 16) + r % 4;
		*block = r / 4;
		return;
	default:
		*row = r;
		*block = l / 4;
	}
}

/* What a lane has of a row or a column, up to 64 bits. */
static void take(const struct gcn_wave *w, unsigned int number, unsigned int l, u16 to[4])
{
	memcpy(to, &w->v[number][l], 4);
	memcpy(to + 2, &w->v[(number + 1) % GCN_VGPRS][l], 4);
}

/* What lanes @x and @y have is multiplied and added up. */
static u64 accumulate(const struct gcn_wave *w, const struct matrix *m, unsigned int x, unsigned int y, u64 sum)
{
	u32 a = w->v[m->a][x], b = w->v[m->b][y];
	u16 row[4], column[4];

	switch (m->op->kind) {
	case FLOATS:
		return fp_fma(&fp32, a, b, sum);
	case BYTES:
		for (unsigned int at = 0; at < 32; at += 8)
			sum += (u64)((s64)(s8)(a >> at) * (s8)(b >> at));
		return (u32)sum;
	default:
		take(w, m->a, x, row);
		take(w, m->b, y, column);
		return fp_dot(m->op->kind == HALVES ? &fp16 : &bf16, row, column, per_lane[m->op->kind], sum);
	}
}

/* One element of the result: lanes of one block, or (where all lanes are one block) of all. */
static u64 element(const struct gcn_wave *w, const struct matrix *m, unsigned int r, unsigned int l, u64 sum)
{
	unsigned int rows = m->op->size, row, block, first, last;

	place(rows, r, l, &row, &block);
	first = m->blocks == 1 ? 0 : block;
	last = m->blocks == 1 ? GCN_LANES / rows - 1 : block;
	for (unsigned int group = first; group <= last; group++)
		sum = accumulate(w, m, group * rows + row, group * rows + l % rows, sum);
	return sum;
}

/* Broadcasts between blocks, and sources that are no vector registers, are not there. */
static bool is_known(const struct gcn_inst *i)
{
	return !(i->w[0] >> 8 & 0xff) && !(i->w[1] >> 29) && i->src[0] >= GCN_VGPR && i->src[1] >= GCN_VGPR;
}

static unsigned int source(const struct gcn_inst *i, unsigned int n)
{
	return i->src[n] % GCN_VGPR + (i->w[1] >> (27 + n) & 1 ? GCN_ACC : 0);
}

void gcn_matrix(struct gcn_wave *w, const struct gcn_inst *i)
{
	struct matrix m = { .op = i->op, .a = source(i, 0), .b = source(i, 1), .blocks = GCN_LANES / i->op->size };
	unsigned int registers, c = i->src[2];
	u32 value = 0;

	if (!is_known(i))
		return gcn_stop(w, "no such form of the instruction", i->w[0]);
	if (i->op->products > per_lane[i->op->kind])
		m.blocks = 1;
	registers = i->op->size * i->op->size * m.blocks / GCN_LANES;
	if (c < GCN_VGPR)
		value = gcn_operand32(w, i, c);
	for (unsigned int r = 0; r < registers; r++)
		for (unsigned int l = 0; l < GCN_LANES; l++)
			w->env->lanes.matrix[r][l] =
				(u32)element(w, &m, r, l, c < GCN_VGPR ? value : w->v[GCN_ACC + (c + r) % GCN_VGPR][l]);
	for (unsigned int r = 0; r < registers; r++)
		memcpy(w->v[GCN_ACC + (i->dst + r) % GCN_VGPR], w->env->lanes.matrix[r], sizeof(w->v[0]));
}
