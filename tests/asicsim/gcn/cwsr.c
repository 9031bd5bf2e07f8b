// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preemption: waves save and restore themselves with the driver's trap handler. SPI tells each where, and the control
 * stack says what is in the save area, as ROCdbgapi reads it: words with the highest bit set describe the waves that
 * follow, others are a wave each; the last one saved comes first, and has its state at the upper end of the area.
 */
#include "dispatch.h"

#define FIRST_OF_GROUP (1ULL << 58) /* in EXEC, where the handler gets its place */
#define REGISTER_BYTES 192	    /* hardware registers, trap registers, and 64 bytes of nothing */
#define STACK_HEADERS  2	    /* of packets, before the words */
#define SAVE_STEPS     16
#define SAVE_ROUNDS    100000

/* Of a wave: first and last of its group, and its slot. */
enum { WORD_STATE = 1u << 31, WORD_EVENT = 1 << 30, WORD_FIRST = 1 << 17, WORD_LAST = 1 << 16, WORD_SLOT = 0xffff };

/* What the first word of a wave's state says. */
struct shape {
	u32 vgpr_blocks, sgpr_blocks, lds_size; /* blocks less one */
};

static struct shape shape_of_wave(const struct gcn_wave *w)
{
	return (struct shape){ .vgpr_blocks = w->gpr_alloc >> 8 & 63,
			       .sgpr_blocks = w->gpr_alloc >> 24 & 7,
			       .lds_size = w->group->lds_size };
}

static u32 word_of_shape(struct shape s)
{
	return WORD_STATE | s.vgpr_blocks | (s.sgpr_blocks + 1) << 6 | s.lds_size / 512 << 9;
}

static struct shape shape_of_word(u32 word)
{
	return (struct shape){ .vgpr_blocks = word & 63,
			       .sgpr_blocks = (word >> 6 & 7) - 1,
			       .lds_size = (word >> 9 & 0x1ff) * 512 };
}

/* VGPRs and as many accumulation registers; SGPRs; LDS with the first wave of a group. */
static u32 state_bytes(struct shape s, bool is_first)
{
	return (s.vgpr_blocks + 1) * 4 * 2 * GCN_LANES * 4 + (s.sgpr_blocks + 1) * 64 + (is_first ? s.lds_size : 0) +
	       REGISTER_BYTES;
}

static bool is_alive(const struct gcn_wave *w)
{
	return w->state == GCN_RUNS || w->state == GCN_WAITS;
}

/* ---- save ---- */

static int push(struct gcn_save_area *area, u32 word)
{
	if (area->stack_at < (STACK_HEADERS + 1) * sizeof(word))
		return -ENOSPC;
	area->stack_at -= sizeof(word);
	memcpy(area->stack + area->stack_at, &word, sizeof(word));
	return 0;
}

/* Gives a wave its place, and writes it down. */
static int give_room(struct gcn_dispatch *d, struct gcn_save_area *area, struct gcn_wave *w, bool is_last)
{
	struct shape shape = shape_of_wave(w);
	u32 size = state_bytes(shape, w->is_first);
	u64 at = area->va + area->area_at;

	if (size > area->size - area->area_at)
		return gcn_dispatch_fail(d, "the save area is full", area->size);
	if (push(area, (w->is_first ? WORD_FIRST : 0) | (is_last ? WORD_LAST : 0) | w->slot) ||
	    push(area, word_of_shape(shape)))
		return gcn_dispatch_fail(d, "the control stack is full", area->stack_size);
	area->area_at += size;
	w->asks_room = false;
	gcn_set_s64(w, GCN_EXEC, at | (w->is_first ? FIRST_OF_GROUP : 0));
	return 0;
}

/* All that live, when all have asked: the first wave last, so that it comes back first. */
static int give_group_room(struct gcn_dispatch *d, struct gcn_save_area *area, struct gcn_group *g)
{
	bool is_last = true;
	int err = 0;

	for (unsigned int i = 0; i < g->nr_waves; i++)
		if (is_alive(g->waves[i]) && !g->waves[i]->asks_room)
			return 0;
	for (unsigned int i = g->nr_waves; i-- > 0 && !err;) {
		if (!is_alive(g->waves[i]))
			continue;
		err = give_room(d, area, g->waves[i], is_last);
		is_last = false;
	}
	return err;
}

static void preempt_group(struct gcn_group *g)
{
	bool is_first = true;

	for (unsigned int i = 0; i < g->nr_waves; i++) {
		struct gcn_wave *w = g->waves[i];

		w->is_first = is_first && is_alive(w);
		is_first = is_first && !is_alive(w);
		if (is_alive(w))
			gcn_preempt(w);
	}
}

static bool is_restoring(const struct gcn_wave *w)
{
	return w->restores && is_alive(w);
}

/* -EAGAIN: of not all waves this is over */
static int group_step(struct gcn_dispatch *d, struct gcn_group *g, bool (*goes_on)(const struct gcn_wave *w))
{
	int err = 0;

	for (unsigned int i = 0; i < g->nr_waves; i++) {
		struct gcn_wave *w = g->waves[i];

		if (goes_on(w))
			gcn_wave_run(w, SAVE_STEPS);
		if (w->state == GCN_STOPPED) {
			d->error = w->error;
			return -EFAULT;
		}
		if (goes_on(w))
			err = -EAGAIN;
	}
	return err;
}

/* What a wave has not read back yet, others would write over. */
static int finish_restore(struct gcn_dispatch *d)
{
	int err = -EAGAIN, e;

	for (unsigned int r = 0; r < SAVE_ROUNDS && err == -EAGAIN; r++) {
		err = 0;
		for (unsigned int i = 0; i < GCN_MAX_GROUPS && (!err || err == -EAGAIN); i++) {
			e = group_step(d, &d->groups[i], is_restoring);
			err = e ? e : err;
		}
	}
	if (err == -EAGAIN)
		return gcn_dispatch_fail(d, "the trap handler does not restore the waves", d->env->tba);
	return err;
}

static int save_group(struct gcn_dispatch *d, struct gcn_save_area *area, struct gcn_group *g)
{
	int err = -EAGAIN;

	preempt_group(g);
	for (unsigned int i = 0; i < SAVE_ROUNDS && err == -EAGAIN; i++) {
		err = group_step(d, g, is_alive);
		if (err == -EAGAIN)
			err = give_group_room(d, area, g) ?: -EAGAIN;
	}
	if (err == -EAGAIN)
		return gcn_dispatch_fail(d, "the trap handler does not save the waves", d->env->tba);
	return err;
}

int gcn_dispatch_save(struct gcn_dispatch *d, struct gcn_save_area *area)
{
	int err = finish_restore(d);

	area->stack_at = area->area_at = area->stack_size;
	for (unsigned int i = GCN_MAX_GROUPS; i-- > 0 && !err;)
		err = save_group(d, area, &d->groups[i]);
	if (err)
		return err;
	gcn_dispatch_end(d);
	if (area->stack_at == area->stack_size)
		return 0;
	area->stack_at -= STACK_HEADERS * sizeof(u32);
	memset(area->stack + area->stack_at, 0, STACK_HEADERS * sizeof(u32));
	return 0;
}

/* ---- restore ---- */

struct restore {
	struct gcn_dispatch *d;
	struct gcn_save_area *area;
	struct shape shape;
	unsigned int nr_groups; /* finished */
};

static bool shape_is_valid(struct shape s)
{
	return s.sgpr_blocks < 7 && s.lds_size <= GCN_MAX_LDS;
}

static bool slot_is_valid(const struct gcn_packet *packet, u32 slot)
{
	return slot < GCN_MAX_SLOTS && slot < (packet->private_waves ? packet->private_waves : 1);
}

static int add_wave(struct restore *r, u32 word)
{
	struct gcn_group *g = &r->d->groups[r->nr_groups];
	bool is_first = word & WORD_FIRST;
	u32 size = state_bytes(r->shape, is_first);
	struct gcn_wave *w;
	int err;

	if (r->nr_groups == GCN_MAX_GROUPS || g->nr_waves == GCN_MAX_WAVES || is_first == !!g->nr_waves)
		return gcn_dispatch_fail(r->d, "the control stack has a wave too many", word);
	if (size > r->area->area_at - r->area->stack_size)
		return gcn_dispatch_fail(r->d, "the control stack has more than the save area", word);
	if (!slot_is_valid(&r->d->packet, word & WORD_SLOT))
		return gcn_dispatch_fail(r->d, "the control stack has a wave whose private memory is not there", word);
	err = g->nr_waves ? 0 : gcn_group_alloc(r->d, g, 0, r->shape.lds_size, 0);
	w = err ? NULL : gcn_wave_alloc(r->d->env, r->shape.vgpr_blocks);
	if (!w)
		return -ENOMEM;
	g->waves[g->nr_waves++] = w;
	w->group = g;
	w->env = r->d->env;
	gcn_wave_init(w, r->shape.vgpr_blocks, r->shape.sgpr_blocks);
	w->slot = word & WORD_SLOT;
	r->area->area_at -= size;
	w->pc = w->env->tba + 4;
	w->status |= GCN_STATUS_PRIV;
	w->in_trap = w->restores = true;
	gcn_set_s64(w, GCN_EXEC, (r->area->va + r->area->area_at) | (is_first ? FIRST_OF_GROUP : 0));
	r->nr_groups += word & WORD_LAST ? 1 : 0;
	return 0;
}

static int take_word(struct restore *r, u32 word)
{
	if (word & WORD_STATE) {
		r->shape = shape_of_word(word);
		return shape_is_valid(r->shape) ? 0
						: gcn_dispatch_fail(r->d, "the control stack has no such wave", word);
	}
	return word & WORD_EVENT ? 0 : add_wave(r, word);
}

int gcn_dispatch_load(struct gcn_dispatch *d, struct gcn_save_area *area)
{
	struct restore r = { .d = d, .area = area };
	u32 word, at = area->stack_at;
	int err = 0;

	if (at > area->stack_size || at % 4 || area->area_at < area->stack_size || area->area_at > area->size)
		return gcn_dispatch_fail(d, "the MQD names no state within the save area", area->area_at);
	for (at += STACK_HEADERS * sizeof(word); at < area->stack_size && !err; at += sizeof(word)) {
		memcpy(&word, area->stack + at, sizeof(word));
		err = take_word(&r, word);
	}
	if (!err &&
	    (area->area_at != area->stack_size || (r.nr_groups < GCN_MAX_GROUPS && d->groups[r.nr_groups].nr_waves)))
		err = gcn_dispatch_fail(d, "the control stack has less than the save area", area->area_at);
	if (!err)
		area->stack_at = area->stack_size;
	return err;
}
