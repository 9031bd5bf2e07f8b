// SPDX-License-Identifier: GPL-2.0-only
/* A dispatch: groups are launched in order, as many at once as there is room for, and all waves take turns. */
#include "dispatch.h"

enum {
	PROPERTY_PRIVATE_BUFFER,
	PROPERTY_PACKET,
	PROPERTY_QUEUE,
	PROPERTY_ARGUMENTS,
	PROPERTY_ID,
	PROPERTY_FLAT_SCRATCH,
	PROPERTY_PRIVATE_SIZE
};

#define STATUS_AT_START 0x410000 /* replay is allowed; the trap handler is there */
#define SGPR_BLOCKS	6	 /* all that there are */
#define BUFFER_SWIZZLED 0x80000000u

int gcn_dispatch_fail(struct gcn_dispatch *d, const char *what, u64 value)
{
	d->error = (struct gcn_error){ .what = what, .value = value };
	return -EFAULT;
}

/* All zeros but the registers that the wave has not asked for. */
struct gcn_wave *gcn_wave_alloc(struct gcn_env *env, u32 vgpr_blocks)
{
	size_t used = (vgpr_blocks + 1) * 4 * sizeof(((struct gcn_wave *)NULL)->v[0]);
	struct gcn_wave *w;

	if (!env->pool || !env->pool->nr)
		return gcn_alloc(sizeof(*w));
	w = env->pool->waves[--env->pool->nr];
	memset(w->v, 0, used);
	memset(w->v[GCN_ACC], 0, used);
	memset((u8 *)w + sizeof(w->v), 0, sizeof(*w) - sizeof(w->v));
	return w;
}

static void wave_free(struct gcn_env *env, struct gcn_wave *w)
{
	if (env->pool && env->pool->nr < GCN_COUNT(env->pool->waves))
		env->pool->waves[env->pool->nr++] = w;
	else
		gcn_free(w);
}

void gcn_pool_free(struct gcn_pool *pool)
{
	while (pool->nr)
		gcn_free(pool->waves[--pool->nr]);
}

void gcn_group_free(struct gcn_group *g)
{
	for (unsigned int i = 0; i < g->nr_waves; i++)
		wave_free(g->waves[i]->env, g->waves[i]);
	gcn_free(g->lds);
	memset(g, 0, sizeof(*g));
}

int gcn_group_alloc(struct gcn_dispatch *d, struct gcn_group *g, unsigned int nr_waves, u32 lds_size, u32 vgpr_blocks)
{
	memset(g, 0, sizeof(*g));
	g->lds_size = lds_size;
	g->lds = gcn_alloc(lds_size ? lds_size : 1);
	for (; g->nr_waves < nr_waves; g->nr_waves++) {
		g->waves[g->nr_waves] = gcn_wave_alloc(d->env, vgpr_blocks);
		if (!g->waves[g->nr_waves])
			break;
		g->waves[g->nr_waves]->group = g;
		g->waves[g->nr_waves]->env = d->env;
	}
	if (g->lds && g->nr_waves == nr_waves)
		return 0;
	gcn_group_free(g);
	return -ENOMEM;
}

void gcn_wave_init(struct gcn_wave *w, u32 vgpr_blocks, u32 sgpr_blocks)
{
	w->gpr_alloc = vgpr_blocks << 8 | sgpr_blocks << 24;
	w->lds_alloc = w->group->lds_size / 256 << 12;
	w->status = STATUS_AT_START;
	w->mode = GCN_MODE_FLOAT;
}

unsigned int gcn_wave_run(struct gcn_wave *w, unsigned int steps)
{
	struct gcn_env *env = w->env;
	unsigned int n;

	if (env->enter)
		env->enter(env);
	n = gcn_run(w, steps);
	gcn_forget(env);
	if (env->leave)
		env->leave(env);
	return n;
}

/* ---- start ---- */

static int read_kernel(struct gcn_dispatch *d)
{
	struct gcn_kernel *k = &d->kernel;
	int err;

	if (d->env->enter)
		d->env->enter(d->env);
	err = gcn_read(d->env, d->packet.kernel, k, sizeof(*k));
	gcn_forget(d->env);
	if (d->env->leave)
		d->env->leave(d->env);
	if (err) {
		gcn_dispatch_fail(d, "no kernel descriptor can be read", d->packet.kernel);
		d->error.is_address = true;
		return err;
	}
	if ((k->rsrc1 >> 12 & GCN_MODE_FIXED_MASK) != GCN_MODE_FIXED)
		return gcn_dispatch_fail(d, "the kernel does not round to the nearest, with denormals",
					 k->rsrc1 >> 12 & 0xff);
	return 0;
}

static u64 group_size(const struct gcn_packet *p)
{
	return (u64)p->workgroup[0] * p->workgroup[1] * p->workgroup[2];
}

static unsigned int waves_of_group(const struct gcn_packet *p)
{
	return (unsigned int)((group_size(p) + GCN_LANES - 1) / GCN_LANES);
}

int gcn_dispatch_start(struct gcn_dispatch *d, const struct gcn_packet *packet)
{
	d->packet = *packet;
	for (int i = 0; i < 3; i++) {
		d->packet.grid[i] += !packet->grid[i];
		if (!packet->workgroup[i] || packet->workgroup[i] > 1024)
			return gcn_dispatch_fail(d, "no group can have this size", packet->workgroup[i]);
		d->nr_groups[i] = (d->packet.grid[i] - 1) / packet->workgroup[i] + 1;
	}
	if (group_size(packet) > GCN_MAX_WAVES * GCN_LANES)
		return gcn_dispatch_fail(d, "no group can have this size", group_size(packet));
	if (packet->lds_size > GCN_MAX_LDS)
		return gcn_dispatch_fail(d, "no group can have so much LDS", packet->lds_size);
	if (packet->private_waves && packet->private_waves < waves_of_group(packet))
		return gcn_dispatch_fail(d, "the private memory is for fewer waves than a group has", packet->private_waves);
	return read_kernel(d);
}

/* ---- launch ---- */

/* The first slots that no wave has, at most @nr: how many there are. */
static unsigned int find_slots(const struct gcn_dispatch *d, unsigned int nr, u32 *slots)
{
	bool is_taken[GCN_MAX_SLOTS] = { false };
	unsigned int found = 0;

	for (unsigned int g = 0; g < GCN_MAX_GROUPS; g++)
		for (unsigned int i = 0; i < d->groups[g].nr_waves; i++)
			is_taken[d->groups[g].waves[i]->slot] = true;
	for (u32 s = 0; s < GCN_MAX_SLOTS && s < d->packet.private_waves && found < nr; s++)
		if (!is_taken[s])
			slots[found++] = s;
	return found;
}

/* The user's registers, as the descriptor asks for them. Where there is no private memory, its buffer is swizzled, at 0. */
static void set_user_sgprs(const struct gcn_dispatch *d, struct gcn_wave *w)
{
	const struct gcn_packet *p = &d->packet;
	const u64 values[] = { [PROPERTY_PACKET] = p->va,
			       [PROPERTY_QUEUE] = p->queue,
			       [PROPERTY_ARGUMENTS] = p->arguments,
			       [PROPERTY_ID] = 0 };
	unsigned int s = d->kernel.properties >> PROPERTY_PRIVATE_BUFFER & 1 ? 4 : 0;

	if (s)
		w->s[1] = BUFFER_SWIZZLED;
	if (s && p->private_wave_bytes)
		memcpy(w->s, p->private_buffer, sizeof(p->private_buffer));
	for (unsigned int i = PROPERTY_PACKET; i <= PROPERTY_ID; i++) {
		if (!(d->kernel.properties >> i & 1))
			continue;
		gcn_set_s64(w, s, values[i]);
		s += 2;
	}
	if (d->kernel.properties >> PROPERTY_FLAT_SCRATCH & 1) {
		gcn_set_s64(w, s, p->private_wave_bytes ? p->private_base : 0);
		s += 2;
	}
	if (d->kernel.properties >> PROPERTY_PRIVATE_SIZE & 1)
		w->s[s] = p->private_size;
}

static void set_group_sgprs(const struct gcn_dispatch *d, struct gcn_wave *w, const u32 id[3])
{
	unsigned int s = d->kernel.rsrc2 >> 1 & 31;

	for (int i = 0; i < 3; i++)
		if (d->kernel.rsrc2 >> (7 + i) & 1)
			w->s[s++] = id[i];
	s += d->kernel.rsrc2 >> 10 & 1;
	if (d->kernel.rsrc2 & 1)
		w->s[s] = w->slot * d->packet.private_wave_bytes;
}

/* Items of a group that reaches over the grid's end are not there. */
static void set_items(const struct gcn_dispatch *d, struct gcn_wave *w, const u32 id[3], u32 first)
{
	const struct gcn_packet *p = &d->packet;
	u64 exec = 0;

	for (u32 l = 0; l < GCN_LANES; l++) {
		u32 n = first + l, x = n % p->workgroup[0], y = n / p->workgroup[0] % p->workgroup[1];
		u32 z = n / p->workgroup[0] / p->workgroup[1];
		bool is_there = z < p->workgroup[2] && (u64)id[0] * p->workgroup[0] + x < p->grid[0] &&
				(u64)id[1] * p->workgroup[1] + y < p->grid[1] &&
				(u64)id[2] * p->workgroup[2] + z < p->grid[2];

		w->v[0][l] = x;
		w->v[1][l] = y;
		w->v[2][l] = z;
		exec |= (u64)is_there << l;
	}
	gcn_set_s64(w, GCN_EXEC, exec);
}

/* -EAGAIN: its waves wait for private memory of others */
static int launch(struct gcn_dispatch *d, struct gcn_group *g)
{
	u32 id[3] = { (u32)(d->next % d->nr_groups[0]), (u32)(d->next / d->nr_groups[0] % d->nr_groups[1]),
		      (u32)(d->next / d->nr_groups[0] / d->nr_groups[1]) };
	unsigned int nr_waves = waves_of_group(&d->packet);
	u32 slots[GCN_MAX_WAVES] = { 0 };
	int err;

	if (d->packet.private_waves && find_slots(d, nr_waves, slots) < nr_waves)
		return -EAGAIN;
	err = gcn_group_alloc(d, g, nr_waves, (d->packet.lds_size + 511) & ~511u, d->kernel.rsrc1 & 63);
	if (err)
		return err;
	for (unsigned int i = 0; i < nr_waves; i++) {
		struct gcn_wave *w = g->waves[i];

		gcn_wave_init(w, d->kernel.rsrc1 & 63, SGPR_BLOCKS);
		w->slot = slots[i];
		w->mode = d->kernel.rsrc1 >> 12 & GCN_MODE_FLOAT_MASK;
		w->mode |= (d->kernel.rsrc1 >> 21 & 1) << 8 | (d->kernel.rsrc1 >> 23 & 1) << 9;
		w->pc = d->packet.kernel + (u64)d->kernel.entry;
		set_user_sgprs(d, w);
		set_group_sgprs(d, w, id);
		set_items(d, w, id, i * GCN_LANES);
	}
	d->next++;
	return 0;
}

/* ---- run ---- */

/* -EAGAIN: its waves have not all ended */
static int run_group(struct gcn_dispatch *d, struct gcn_group *g, unsigned int steps)
{
	int err = 0;

	for (unsigned int i = 0; i < g->nr_waves; i++) {
		struct gcn_wave *w = g->waves[i];

		gcn_wave_run(w, steps);
		if (w->state == GCN_STOPPED) {
			d->error = w->error;
			return -EFAULT;
		}
		if (w->state == GCN_RUNS || w->state == GCN_WAITS)
			err = -EAGAIN;
	}
	return err;
}

static bool all_launched(const struct gcn_dispatch *d)
{
	return d->next >= (u64)d->nr_groups[0] * d->nr_groups[1] * d->nr_groups[2];
}

int gcn_dispatch_run(struct gcn_dispatch *d, unsigned int steps)
{
	bool any = false;
	int err;

	for (unsigned int i = 0; i < GCN_MAX_GROUPS; i++) {
		struct gcn_group *g = &d->groups[i];

		err = g->nr_waves || all_launched(d) ? 0 : launch(d, g);
		if (!err && g->nr_waves)
			err = run_group(d, g, steps);
		if (err && err != -EAGAIN)
			return err;
		if (!err)
			gcn_group_free(g);
		any |= err == -EAGAIN;
	}
	return any || !all_launched(d) ? -EAGAIN : 0;
}

void gcn_dispatch_end(struct gcn_dispatch *d)
{
	for (unsigned int i = 0; i < GCN_MAX_GROUPS; i++)
		gcn_group_free(&d->groups[i]);
}
