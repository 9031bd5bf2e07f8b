// SPDX-License-Identifier: GPL-2.0-only
/* A wave step by step: fetch, execute; its hardware registers, barriers and traps. */
#include "inst.h"

enum {
	HW_MODE = 1,
	HW_STATUS,
	HW_TRAPSTS,
	HW_ID,
	HW_GPR_ALLOC,
	HW_LDS_ALLOC,
	HW_IB_STS,
	HW_SH_MEM_BASES = 15,
	HW_TMA_LO = 18,
	HW_TMA_HI
};

enum { MSG_INTERRUPT = 1, MSG_SAVEWAVE = 4, MSG_GET_DOORBELL = 10 };

void gcn_stop(struct gcn_wave *w, const char *what, u64 value)
{
	if (w->state == GCN_STOPPED)
		return;
	w->state = GCN_STOPPED;
	w->error.what = what;
	w->error.value = value;
}

void gcn_stop_at_address(struct gcn_wave *w, u64 va)
{
	w->error.is_address = w->state != GCN_STOPPED;
	gcn_stop(w, "memory that is not there, or not for this access", va);
}

/* ---- hardware registers ---- */

static u32 status_of(const struct gcn_wave *w)
{
	u32 status = w->status & ~(u32)(1 | GCN_STATUS_EXECZ | GCN_STATUS_VCCZ);

	return status | w->scc | (gcn_s64(w, GCN_EXEC) ? 0 : GCN_STATUS_EXECZ) |
	       (gcn_s64(w, GCN_VCC) ? 0 : GCN_STATUS_VCCZ);
}

static u32 hwreg(struct gcn_wave *w, u32 id)
{
	switch (id) {
	case HW_MODE:
		return w->mode;
	case HW_STATUS:
		return status_of(w);
	case HW_TRAPSTS:
		return w->trapsts;
	case HW_ID:
		return 0;
	case HW_GPR_ALLOC:
		return w->gpr_alloc;
	case HW_LDS_ALLOC:
		return w->lds_alloc;
	case HW_IB_STS:
		return w->ib_sts;
	case HW_SH_MEM_BASES:
		return w->env->sh_mem_bases;
	case HW_TMA_LO:
		return (u32)(w->env->tma >> 8);
	case HW_TMA_HI:
		return (u32)(w->env->tma >> 40);
	}
	gcn_stop(w, "no hardware register has number", id);
	return 0;
}

static u32 mask_of(u32 simm)
{
	u32 size = (simm >> 11 & 31) + 1;

	return size == 32 ? ~0u : (1u << size) - 1;
}

u32 gcn_hwreg(struct gcn_wave *w, u32 simm)
{
	return hwreg(w, simm & 63) >> (simm >> 6 & 31) & mask_of(simm);
}

static void set_mode(struct gcn_wave *w, u32 mode)
{
	if ((mode & GCN_MODE_FIXED_MASK) != GCN_MODE_FIXED)
		return gcn_stop(w, "numbers are not rounded to the nearest, with denormals: mode", mode);
	w->mode = mode;
}

void gcn_set_hwreg(struct gcn_wave *w, u32 simm, u32 value)
{
	u32 id = simm & 63, at = simm >> 6 & 31, mask = mask_of(simm) << at;
	u32 new = (hwreg(w, id) & ~mask) | (value << at & mask);

	switch (id) {
	case HW_MODE:
		return set_mode(w, new);
	case HW_STATUS:
		w->status = (new & ~(u32)GCN_STATUS_PRIV) | (w->status & GCN_STATUS_PRIV);
		w->scc = new & 1;
		return;
	case HW_TRAPSTS:
		w->trapsts = new;
		return;
	case HW_IB_STS:
		w->ib_sts = new;
		return;
	}
	gcn_stop(w, "a hardware register cannot be set: number", id);
}

/* ---- groups ---- */

/* Lets a group go on whose waves all have come to a barrier, or ended. */
static void open_barrier(struct gcn_group *g)
{
	struct gcn_wave *w;

	for (unsigned int i = 0; i < g->nr_waves; i++)
		if (g->waves[i]->state == GCN_RUNS)
			return;
	for (unsigned int i = 0; i < g->nr_waves; i++) {
		w = g->waves[i];
		if (w->state != GCN_WAITS)
			continue;
		w->state = GCN_RUNS;
		w->pc += 4;
	}
}

/* Until it is open the barrier is the wave's next instruction, also for the trap handler. */
void gcn_barrier(struct gcn_wave *w)
{
	w->pc -= 4;
	w->state = GCN_WAITS;
	open_barrier(w->group);
}

void gcn_end(struct gcn_wave *w, enum gcn_state state)
{
	w->state = state;
	open_barrier(w->group);
}

/* ---- traps ---- */

static void enter_handler(struct gcn_wave *w, u32 trap)
{
	w->s[GCN_TTMP] = (u32)w->pc;
	w->s[GCN_TTMP + 1] = (u32)(w->pc >> 32 & 0xffff) | trap << 16;
	w->status |= GCN_STATUS_PRIV;
	w->pc = w->env->tba;
	w->in_trap = true;
	w->state = GCN_RUNS;
}

void gcn_trap(struct gcn_wave *w, u32 number)
{
	w->pc -= 4;
	enter_handler(w, number);
}

void gcn_preempt(struct gcn_wave *w)
{
	w->trapsts |= GCN_TRAPSTS_SAVECTX;
	if (!w->in_trap && (w->state == GCN_RUNS || w->state == GCN_WAITS))
		enter_handler(w, 0);
}

void gcn_return_from_trap(struct gcn_wave *w, u64 pc)
{
	w->pc = pc & 0xffffffffffffULL;
	w->status &= ~(u32)GCN_STATUS_PRIV;
	w->in_trap = w->restores = false;
	if (w->trapsts & GCN_TRAPSTS_SAVECTX)
		enter_handler(w, 0);
}

/* The wave polls EXEC until it has been told where its state is to go, or for a bit that its doorbell does not have. */
void gcn_message(struct gcn_wave *w, u32 message)
{
	if (message == MSG_SAVEWAVE)
		w->asks_room = true;
	else if (message == MSG_GET_DOORBELL)
		w->s[GCN_EXEC] = w->env->doorbell;
	else if (message == MSG_INTERRUPT && w->env->interrupt)
		w->env->interrupt(w->env, w->s[GCN_M0] & 0xffffff, w->in_trap);
	else
		gcn_stop(w, "nobody gets a message of kind", message);
}

/* ---- steps ---- */

static void execute(struct gcn_wave *w, const struct gcn_inst *i)
{
	if (w->mode & GCN_MODE_VSKIP && i->format >= VOP2)
		return;
	switch (i->format) {
	case SOP2:
	case SOPK:
	case SOP1:
	case SOPC:
	case SOPP:
		return gcn_scalar(w, i);
	case SMEM:
		return gcn_smem(w, i);
	case DS:
		return gcn_ds(w, i);
	case FLAT:
		return gcn_flat(w, i);
	case MUBUF:
		return gcn_mubuf(w, i);
	default:
		return gcn_vector(w, i);
	}
}

/* The instruction of these dwords: as it was when the wave, or another one, came by before, or decoded anew. */
static struct gcn_inst *decoded(struct gcn_wave *w, struct gcn_inst *own, const u32 dw[2])
{
	struct gcn_inst *i = w->env->decoded ? &w->env->decoded[w->pc / 4 % GCN_DECODED] : own;

	if (!i->op || i->w[0] != dw[0] || i->w[1] != dw[1])
		gcn_decode(i, dw[0], dw[1]);
	return i;
}

/* Own: an instruction that nobody keeps. */
static struct gcn_inst *fetch(struct gcn_wave *w, struct gcn_inst *own)
{
	u32 dw[2] = { 0 };
	struct gcn_inst *i;

	if (gcn_fetch(w->env, w->pc, dw) || (gcn_is_long(dw[0]) && gcn_fetch(w->env, w->pc + 4, dw + 1))) {
		gcn_stop_at_address(w, w->pc);
		return own;
	}
	i = decoded(w, own, dw);
	if (!i->op)
		gcn_stop(w, "no such instruction, or a form of it that is not there", dw[0]);
	return i;
}

/* A wave with a trap handler hears of what is not there; what is an address is the memory's to tell. */
static void tell(struct gcn_wave *w)
{
	if (!w->env->illegal || !w->env->tba || w->in_trap || w->error.is_address)
		return;
	w->env->illegal(w->env, &w->error);
	memset(&w->error, 0, sizeof(w->error));
	w->trapsts |= GCN_TRAPSTS_ILLEGAL;
	enter_handler(w, 0);
}

static void stopped(struct gcn_wave *w, const struct gcn_inst *i, u64 pc)
{
	w->pc = w->error.pc = pc;
	memcpy(w->error.w, i->w, sizeof(i->w));
	w->error.name = i->op ? i->op->name : gcn_format_name(i->w[0] ? i->format : GCN_FORMATS);
	tell(w);
}

static void step(struct gcn_wave *w)
{
	struct gcn_inst own = { 0 };
	const struct gcn_inst *i = &own;
	u64 pc = w->pc;

	if (pc % 4)
		gcn_stop(w, "code is not aligned", pc);
	else
		i = fetch(w, &own);
	if (w->state != GCN_STOPPED) {
		w->pc += 4 * i->length;
		execute(w, i);
		if (w->env->executed)
			w->env->executed(w->env, i->op->name);
	}
	if (w->state == GCN_STOPPED)
		stopped(w, i, pc);
}

/* Only its trap handler goes on, to save it. */
static bool is_halted(const struct gcn_wave *w)
{
	return w->status & GCN_STATUS_HALT && !w->in_trap;
}

unsigned int gcn_run(struct gcn_wave *w, unsigned int steps)
{
	unsigned int n;

	for (n = 0; n < steps && w->state == GCN_RUNS && !is_halted(w); n++)
		step(w);
	return n;
}
