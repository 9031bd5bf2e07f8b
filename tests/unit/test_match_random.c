// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher against brute force over random pairs of machines.
 *
 * Machines are described by plain arrays. From them come the topologies that
 * the matcher gets and, independently, the rules that brute force applies. The
 * map has to keep them, to be on idle GPUs and to keep all ids, where that can be. MATCH_SEED chooses the machines, MATCH_ROUNDS how
 * many; a failure prints both and the round.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "match/match.h"
#include "log_stub.h"

#define ROUNDS	   100000
#define MAX_SAVED  6
#define MAX_LOCAL  7
#define N_CPUS	   3
#define FIRST_GPU  N_CPUS /* node id of GPU 0 */
#define ABSENT_ID  99	  /* a node that is not there */
#define FIRST_CARD 128

static uint64_t seed, rounds, round_now;
static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((random_state >> 33) % n);
}

static bool chance(uint32_t percent)
{
	return below(100) < percent;
}

/* ---- a machine ---- */

enum { NONE, PCIE, XGMI };

struct wire {
	int type;      /* NONE, PCIE, XGMI */
	int bandwidth; /* -1: not told */
	int flags;     /* -1: not told */
	bool doubled;  /* a PCIe p2p_links entry besides */
};

struct gpu {
	uint32_t id;
	int pci;							/* -1: not told */
	int cpu;							/* -1: no link to a CPU node */
	int host[2];							/* type of the link to, and from, the host */
	bool hidden;							/* listed with gpu_id 0 */
	int device, xcc, caches, gws, firmware, sdma, vram, capability; /* xcc -1: not told */
};

struct machine {
	unsigned int n;
	struct gpu gpu[MAX_LOCAL];
	struct wire wire[MAX_LOCAL][MAX_LOCAL];
};

/* Names come from small sets, so that they coincide often. */
static void random_names(struct machine *m)
{
	uint32_t ids[] = { 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80 };
	int pci[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	bool has_pci = chance(80);

	for (unsigned int i = 0; i < 8; i++) {
		unsigned int j = i + below(8 - i), k = i + below(8 - i);
		uint32_t id = ids[i];
		int address = pci[i];

		ids[i] = ids[j];
		ids[j] = id;
		pci[i] = pci[k];
		pci[k] = address;
	}
	for (unsigned int i = 0; i < m->n; i++) {
		m->gpu[i].id = ids[i];
		m->gpu[i].pci = has_pci ? pci[i] : -1;
	}
}

/* How much the GPUs of a machine differ. */
static void random_gpus(struct machine *m, uint32_t variety)
{
	bool has_xcc = chance(70), has_cpu = chance(85);

	for (unsigned int i = 0; i < m->n; i++) {
		struct gpu *g = &m->gpu[i];

		g->cpu = has_cpu ? (int)below(1 + below(N_CPUS)) : -1;
		g->host[0] = has_cpu ? PCIE : NONE;
		g->host[1] = has_cpu && !chance(variety / 4) ? PCIE : NONE;
		if (has_cpu && chance(variety / 4))
			g->host[0] = g->host[1] = XGMI;
		g->hidden = chance(2);
		g->device = chance(variety / 3);
		g->xcc = has_xcc ? 1 + chance(variety / 4) : -1;
		g->caches = 5 - (int)chance(variety / 3);
		g->gws = 5 - (int)chance(variety / 3);
		g->firmware = 5 - (int)chance(variety / 3);
		g->sdma = 5 - (int)chance(variety / 3);
		g->vram = 5 - (int)(chance(variety) ? below(4) : 0);
		/* bit 7 is one that does not count, bit 26 is one that does */
		g->capability = (int)chance(variety) << 7 | (int)chance(variety / 4) << 26;
	}
}

static void random_wires(struct machine *m)
{
	unsigned int hives = 1 + below(4), hive[MAX_LOCAL];
	uint32_t p2p = chance(50) ? 0 : chance(50) ? 100 : 60, missing = chance(60) ? 0 : 15;
	bool told = chance(70), varied = chance(30);

	for (unsigned int i = 0; i < m->n; i++)
		hive[i] = below(hives + 1);
	for (unsigned int i = 0; i < m->n; i++) {
		for (unsigned int j = 0; j < m->n; j++) {
			struct wire *w = &m->wire[i][j];

			*w = (struct wire){ .type = NONE, .bandwidth = -1, .flags = -1 };
			if (i == j || chance(missing))
				continue;
			if (hive[i] == hive[j] && hive[i] < hives)
				w->type = XGMI;
			else if (chance(p2p))
				w->type = PCIE;
			w->bandwidth = told ? 100 + 50 * (int)(varied && chance(30)) : -1;
			w->flags = told ? (varied && chance(20) ? 1 << below(5) : 1) : -1;
			w->doubled = w->type == XGMI && chance(20);
		}
	}
}

static void random_machine(struct machine *m, unsigned int n)
{
	memset(m, 0, sizeof(*m));
	m->n = n;
	random_gpus(m, chance(50) ? 0 : 60);
	random_names(m);
	random_wires(m);
}

/* A machine on which the other one often fits: its GPUs in another order, some more, little changes. */
static void similar_machine(struct machine *m, const struct machine *to)
{
	unsigned int order[MAX_LOCAL], n = to->n;

	random_machine(m, n + below(MAX_LOCAL - n + 1));
	for (unsigned int i = 0; i < m->n; i++) {
		unsigned int j = below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned int i = 0; i < n; i++) {
		uint32_t id = m->gpu[order[i]].id;
		int pci = m->gpu[order[i]].pci;

		m->gpu[order[i]] = to->gpu[i];
		if (chance(70)) {
			m->gpu[order[i]].id = id;
			m->gpu[order[i]].pci = pci;
		}
		m->gpu[order[i]].hidden = false;
		if (chance(5))
			m->gpu[order[i]].vram--;
		if (chance(5))
			m->gpu[order[i]].cpu = m->gpu[order[i]].cpu >= 0 ? (int)below(N_CPUS) : -1;
		for (unsigned int j = 0; j < n; j++) {
			if (i != j && !chance(3))
				m->wire[order[i]][order[j]] = to->wire[i][j];
		}
	}
	if (chance(50))
		random_names(m);
	/* Names of the copied ones may collide with others: gpu ids are unique on a machine. */
	for (unsigned int i = 0; i < m->n; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (m->gpu[i].id == m->gpu[j].id)
				m->gpu[i].id += 0x100 * (1 + i);
			if (m->gpu[i].pci == m->gpu[j].pci && m->gpu[i].pci >= 0)
				m->gpu[i].pci += 20 * (1 + (int)i);
		}
	}
}

/* ---- the topology of a machine ---- */

static void set(struct topology_node *node, enum topology_prop prop, int64_t value)
{
	if (value >= 0)
		assert_int_equal(topology_node_set(node, prop, (uint64_t)value), 0);
}

static void add_link(struct topology_node *node, uint32_t to, const struct wire *w, bool is_p2p)
{
	struct topology_link link = { .type = w->type == XGMI ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE,
				      .node_to_id = to,
				      .is_p2p = is_p2p,
				      .has_bandwidth = w->bandwidth >= 0,
				      .max_bandwidth = w->bandwidth >= 0 ? (uint32_t)w->bandwidth : 0,
				      .has_flags = w->flags >= 0,
				      .flags = w->flags >= 0 ? (uint32_t)w->flags : 0 };

	if (w->type != NONE)
		assert_int_equal(topology_node_add_link(node, &link), 0);
}

static void add_gpu_links(const struct machine *m, unsigned int i, struct topology_node *node)
{
	static const struct wire pcie = { .type = PCIE, .bandwidth = -1, .flags = -1 };

	for (unsigned int j = 0; j < m->n; j++) {
		add_link(node, FIRST_GPU + j, &m->wire[i][j], m->wire[i][j].type == PCIE);
		if (m->wire[i][j].doubled)
			add_link(node, FIRST_GPU + j, &pcie, true);
	}
	if (below(4) == 0)
		add_link(node, ABSENT_ID, &pcie, false);
}

static void add_gpu(struct topology *t, const struct machine *m, unsigned int i)
{
	const struct gpu *g = &m->gpu[i];
	const struct wire host = { .type = g->host[0], .bandwidth = -1, .flags = -1 };
	struct topology_node *node;

	assert_int_equal(topology_add_node(t, FIRST_GPU + i, &node), 0);
	set(node, TOPOLOGY_GPU_ID, g->hidden ? 0 : g->id);
	set(node, TOPOLOGY_CPU_CORES_COUNT, 0);
	set(node, TOPOLOGY_DRM_RENDER_MINOR, FIRST_CARD + i);
	set(node, TOPOLOGY_LOCATION_ID, g->pci);
	set(node, TOPOLOGY_DOMAIN, g->pci >= 0 ? 0 : -1);
	set(node, TOPOLOGY_DEVICE_ID, g->device);
	set(node, TOPOLOGY_NUM_XCC, g->xcc);
	set(node, TOPOLOGY_CACHES_COUNT, g->caches);
	set(node, TOPOLOGY_NUM_GWS, g->gws);
	set(node, TOPOLOGY_FW_VERSION, g->firmware);
	set(node, TOPOLOGY_SDMA_FW_VERSION, g->sdma);
	set(node, TOPOLOGY_VRAM_SIZE, g->vram);
	set(node, TOPOLOGY_CAPABILITY, g->capability);
	if (g->cpu >= 0)
		add_link(node, (uint32_t)g->cpu, &host, false);
	add_gpu_links(m, i, node);
}

/* Nodes are added in an order that is turned by "turn": it must not matter on the local side. */
static struct topology *topology_of(const struct machine *m, unsigned int turn)
{
	struct topology *t = topology_new();

	assert_non_null(t);
	for (unsigned int k = 0; k < m->n; k++)
		add_gpu(t, m, (k + turn) % m->n);
	for (uint32_t cpu = 0; cpu < N_CPUS; cpu++) {
		struct topology_node *node;

		assert_int_equal(topology_add_node(t, cpu, &node), 0);
		set(node, TOPOLOGY_GPU_ID, 0);
		set(node, TOPOLOGY_CPU_CORES_COUNT, 8);
		for (unsigned int i = 0; i < m->n; i++) {
			const struct wire host = { .type = m->gpu[i].host[1], .bandwidth = -1, .flags = -1 };

			if (m->gpu[i].cpu == (int)cpu)
				add_link(node, FIRST_GPU + i, &host, false);
		}
	}
	assert_int_equal(topology_finish(t), 0);
	return t;
}

/* ---- brute force ---- */

struct case_ {
	struct machine saved, local;
	bool candidate[MAX_LOCAL];
	struct match_options options;
	struct device_map_entry pairs[MAX_SAVED];
	bool busy[MAX_LOCAL];
	int pinned[MAX_SAVED]; /* by the device map: local GPU, or -1 */
	/* What brute force found */
	bool found, all_idle, all_same;
	int now[MAX_SAVED];
};

static bool on(const struct case_ *c, enum match_check check)
{
	return !c->options.relaxed[check];
}

static bool gpu_fits(const struct case_ *c, unsigned int i, unsigned int v)
{
	const struct gpu *s = &c->saved.gpu[i], *l = &c->local.gpu[v];

	if (!c->candidate[v] || l->hidden || (c->pinned[i] >= 0 && c->pinned[i] != (int)v))
		return false;
	if (s->device != l->device || (s->xcc >= 0 && l->xcc >= 0 && s->xcc != l->xcc))
		return false;
	if ((on(c, MATCH_CHECK_VRAM_SIZE) && l->vram < s->vram) ||
	    (on(c, MATCH_CHECK_FW_VERSION) && l->firmware < s->firmware) ||
	    (on(c, MATCH_CHECK_SDMA_FW_VERSION) && l->sdma < s->sdma) ||
	    (on(c, MATCH_CHECK_CACHES_COUNT) && l->caches < s->caches) ||
	    (on(c, MATCH_CHECK_NUM_GWS) && l->gws < s->gws))
		return false;
	if (on(c, MATCH_CHECK_CAPABILITY) && (s->capability ^ l->capability) & (1 << 26))
		return false;
	if (!on(c, MATCH_CHECK_TOPOLOGY) || s->cpu < 0)
		return true;
	return (l->cpu >= 0 ? l->host[0] : NONE) >= s->host[0] && (l->cpu >= 0 ? l->host[1] : NONE) >= s->host[1];
}

/* Flag 16 means: no access between the GPUs' memories. The doubling PCIe link has no flags. */
static int usable_type(const struct wire *w)
{
	if (w->flags >= 0 && w->flags & 16)
		return w->doubled ? PCIE : NONE;
	return w->type;
}

static bool wire_serves(const struct wire *s, const struct wire *l)
{
	int wanted = usable_type(s), has = usable_type(l);
	bool s_plain = wanted != s->type, l_plain = has != l->type;
	int s_flags = s_plain ? -1 : s->flags, l_flags = l_plain ? -1 : l->flags;

	if (wanted == NONE)
		return true;
	if (has < wanted)
		return false;
	if (wanted == XGMI && s->bandwidth >= 0 && l->bandwidth >= 0 && l->bandwidth < s->bandwidth)
		return false;
	/* Atomics that the saved link had: flags 4 and 8 say that there are none. */
	if (s_flags < 0 || l_flags < 0 || !(l_flags & ~s_flags & 12))
		return true;
	/* The PCIe link besides tells nothing of atomics and serves where PCIe will do. */
	return l->doubled && !l_plain && wanted == PCIE;
}

static bool pair_fits(const struct case_ *c, unsigned int i, unsigned int j)
{
	unsigned int v = (unsigned int)c->now[i], u = (unsigned int)c->now[j];

	if (on(c, MATCH_CHECK_NUMA) && c->saved.gpu[i].cpu >= 0 && c->saved.gpu[i].host[0] != NONE &&
	    c->saved.gpu[i].cpu == c->saved.gpu[j].cpu &&
	    (c->local.gpu[v].cpu < 0 || c->local.gpu[v].cpu != c->local.gpu[u].cpu))
		return false;
	return !on(c, MATCH_CHECK_TOPOLOGY) || (wire_serves(&c->saved.wire[i][j], &c->local.wire[v][u]) &&
						wire_serves(&c->saved.wire[j][i], &c->local.wire[u][v]));
}

/* What a map of brute force is worth: how many saved GPUs are on idle ones, and how many keep their gpu id. */
static void note_map(struct case_ *c)
{
	unsigned int nr = 0, nr_idle = 0, nr_same = 0;

	for (unsigned int i = 0; i < c->saved.n; i++) {
		if (c->saved.gpu[i].hidden)
			continue;
		nr++;
		nr_idle += !c->busy[c->now[i]];
		nr_same += c->saved.gpu[i].id == c->local.gpu[c->now[i]].id;
	}
	c->found = true;
	c->all_idle |= nr_idle == nr;
	c->all_same |= nr_idle == nr && nr_same == nr;
}

static bool is_free(const struct case_ *c, unsigned int i, unsigned int v, unsigned int used)
{
	return !(used >> v & 1) && gpu_fits(c, i, v);
}

static void brute_force(struct case_ *c, unsigned int i, unsigned int used)
{
	if (i == c->saved.n) {
		note_map(c);
		return;
	}
	if (c->saved.gpu[i].hidden) {
		c->now[i] = -1;
		brute_force(c, i + 1, used);
		return;
	}
	for (unsigned int v = 0; v < c->local.n; v++) {
		bool fits = is_free(c, i, v, used);

		c->now[i] = (int)v;
		for (unsigned int j = 0; fits && j < i; j++)
			fits = c->saved.gpu[j].hidden || pair_fits(c, j, i);
		if (fits)
			brute_force(c, i + 1, used | 1U << v);
	}
}

/* ---- one round ---- */

static void random_options(struct case_ *c)
{
	uint32_t off = chance(60) ? 0 : 30;

	c->options = (struct match_options){ .pairs = c->pairs };
	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		c->options.relaxed[i] = chance(off);
}

static struct device_ref random_ref(const struct gpu *g, unsigned int index)
{
	if (chance(30) && g->pci >= 0)
		return (struct device_ref){ DEVICE_REF_PCI, (uint64_t)g->pci };
	if (chance(40))
		return (struct device_ref){ DEVICE_REF_RENDER_MINOR, FIRST_CARD + index };
	return (struct device_ref){ DEVICE_REF_GPU_ID, g->id };
}

static void random_device_map(struct case_ *c)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < c->saved.n; i++)
		c->pinned[i] = -1;
	if (!chance(15))
		return;
	for (unsigned int i = 0; i < c->saved.n; i++) {
		unsigned int v = below(c->local.n);

		if (c->saved.gpu[i].hidden || !c->candidate[v] || c->local.gpu[v].hidden || used >> v & 1 || chance(50))
			continue;
		used |= 1U << v;
		c->pinned[i] = (int)v;
		c->pairs[c->options.nr_pairs++] =
			(struct device_map_entry){ random_ref(&c->saved.gpu[i], i), random_ref(&c->local.gpu[v], v) };
	}
}

static void random_case(struct case_ *c)
{
	bool all = chance(80), some_busy = chance(30);

	c->found = c->all_idle = c->all_same = false;
	random_options(c);
	random_machine(&c->saved, 1 + below(MAX_SAVED));
	if (chance(75))
		similar_machine(&c->local, &c->saved);
	else
		random_machine(&c->local, 1 + below(MAX_LOCAL));
	for (unsigned int v = 0; v < c->local.n; v++)
		c->candidate[v] = all || !chance(20);
	for (unsigned int v = 0; v < c->local.n; v++)
		c->busy[v] = some_busy && chance(40);
	random_device_map(c);
}

#define fail_round(fmt, ...) fail_msg("MATCH_SEED=%" PRIu64 " round %" PRIu64 ": " fmt, seed, round_now, ##__VA_ARGS__)

/* The rules hold between saved GPU @i and all before it. Returns its place with those that are used. */
static unsigned int check_pair(struct case_ *c, unsigned int i, unsigned int used)
{
	unsigned int v = (unsigned int)c->now[i];

	if (v >= c->local.n || !is_free(c, i, v, used))
		fail_round("saved GPU %u may not become GPU %u", i, v);
	for (unsigned int j = 0; j < i; j++)
		if (!c->saved.gpu[j].hidden && !pair_fits(c, j, i))
			fail_round("saved GPUs %u and %u may not become GPUs %d and %u", j, i, c->now[j], v);
	if (c->all_idle && c->busy[v])
		fail_round("saved GPU %u is put on a busy one, and all could be on idle ones", i);
	if (c->all_same && c->saved.gpu[i].id != c->local.gpu[v].id)
		fail_round("saved GPU %u could keep its id, as could all others", i);
	return used | 1U << v;
}

static void check_map(struct case_ *c, const struct match_map *map, const struct topology *local)
{
	unsigned int k = 0, used = 0;

	for (unsigned int i = 0; i < c->saved.n; i++) {
		unsigned int v;

		if (c->saved.gpu[i].hidden)
			continue;
		if (k == map->nr_pairs || map->pairs[k].user_gpu_id != c->saved.gpu[i].id)
			fail_round("saved GPU %u is not pair %u of the map", i, k);
		v = local->nodes[map->pairs[k].local]->id - FIRST_GPU;
		c->now[i] = (int)v;
		used = check_pair(c, i, used);
		assert_int_equal(map->pairs[k].actual_gpu_id, c->local.gpu[v].id);
		assert_int_equal(map->pairs[k].local_minor, FIRST_CARD + v);
		assert_int_equal(map->pairs[k].saved_minor, FIRST_CARD + i);
		k++;
	}
	assert_int_equal(k, map->nr_pairs);
}

static void check_refusal(void)
{
	const char *text = fail_text();

	if (strncmp(text, "no map of ", 10) || strlen(text) >= FAIL_TEXT_MAX - 1 || strchr(text, '\n') ||
	    strstr(text, ";;") || strstr(text, "  "))
		fail_round("the refusal is '%s'", text);
	fail_clear();
}

static void match_once(struct case_ *c, unsigned int turn)
{
	_cleanup_topology_ struct topology *saved = topology_of(&c->saved, 0), *local = topology_of(&c->local, turn);
	const char *unusable[TOPOLOGY_MAX_NODES] = { NULL };
	bool busy[TOPOLOGY_MAX_NODES] = { false };
	struct match_map *map = NULL;
	int r;

	for (unsigned int i = 0; i < local->nr_nodes; i++) {
		uint32_t id = local->nodes[i]->id;

		if (id < FIRST_GPU)
			continue;
		unusable[i] = c->candidate[id - FIRST_GPU] ? NULL : "not for this process";
		busy[i] = c->busy[id - FIRST_GPU];
	}
	c->options.unusable = unusable;
	c->options.busy = busy;
	r = match_devices(saved, local, &c->options, &map);
	if (r != (c->found ? 0 : -ENODEV))
		fail_round("match_devices says %d, brute force finds %s", r, c->found ? "a map" : "none");
	if (c->found)
		check_map(c, map, local);
	else
		check_refusal();
	match_map_free(map);
}

static uint64_t number_from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void match_agrees_with_brute_force(void **state)
{
	static struct case_ c;
	uint64_t n_found = 0;

	(void)state;
	for (round_now = 0; round_now < rounds; round_now++) {
		random_state = seed * 1000003 + round_now;
		below(2);
		random_case(&c);
		brute_force(&c, 0, 0);
		n_found += c.found;
		match_once(&c, 0);
		/* The same machine, listed in another order, gives the same map. */
		if (round_now % 4 == 0)
			match_once(&c, 1 + below(MAX_LOCAL));
	}
	print_message("# %" PRIu64 " of %" PRIu64 " pairs have a map\n", n_found, rounds);
	/* A test that sees one side only is none. */
	if (rounds >= 1000)
		assert_in_range(n_found, rounds / 5, rounds - rounds / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(match_agrees_with_brute_force) };

	seed = number_from_env("MATCH_SEED", (uint64_t)time(NULL));
	rounds = number_from_env("MATCH_ROUNDS", ROUNDS);
	print_message("# MATCH_SEED=%" PRIu64 " MATCH_ROUNDS=%" PRIu64 "\n", seed, rounds);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
