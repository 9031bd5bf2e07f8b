// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher against brute force: random machines, links, settings, other people's use and work of the process. The
 * rules are written here a second time, from the text of match/match.h.
 *
 * ORACLE_SEED chooses the cases, ORACLE_ROUNDS how many.
 */
#include <inttypes.h>

#include "unit.h"
#include "match/match.h"
#include "log_stub.h"
#include "machine_text.h"

#define ROUNDS	 10000 /* some seconds, most of them for the sanitizers */
#define MAX_GPUS 8

/* Memory that was freed is not kept apart: there is much of it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((random_state >> 33) % n);
}

static bool one_of(uint32_t n)
{
	return !below(n);
}

static uint64_t number_from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* ---- random machines ---- */

struct profile {
	uint32_t nr_cpus, nr_gpus, hive_size; /* 0: hives of random sizes */
	uint32_t xgmi, pcie;		      /* percent of the links in a hive, and of the others */
	uint32_t lacks_host;		      /* percent of the links to the CPU */
	uint32_t models, sizes, bandwidths;   /* how many different ones */
	uint32_t partitions;		      /* of each device */
	bool shuffled, has_flags;
};

static struct profile random_profile(void)
{
	return (struct profile){
		.nr_cpus = 1 + below(2),
		.nr_gpus = 1 + below(5),
		.hive_size = 1 + below(4),
		.xgmi = one_of(2) ? 100 : below(101),
		.pcie = one_of(3) ? below(101) : 100 * below(2),
		.lacks_host = one_of(4) ? 20 : 0,
		.models = one_of(3) ? 2 : 1,
		.sizes = one_of(3) ? 2 : 1,
		.bandwidths = one_of(3) ? 2 : 0,
		.partitions = one_of(3) ? 1 + below(3) : 1,
		.shuffled = one_of(2),
		.has_flags = one_of(3),
	};
}

/* Hives alone, which can be swapped, or not quite. */
static void only_hives(struct profile *p)
{
	*p = (struct profile){
		.nr_cpus = 1, .nr_gpus = 4 + below(3), .xgmi = 100, .models = 1 + one_of(3), .sizes = 1, .partitions = 1
	};
}

static void random_link(struct topology *t, const struct profile *p, uint32_t from, uint32_t to, uint32_t type)
{
	struct topology_link link = { .type = type, .node_to_id = to, .has_weight = true, .weight = 20 };

	if (p->bandwidths && !one_of(4)) {
		link.has_bandwidth = true;
		link.max_bandwidth = 50000 * (1 + below(p->bandwidths));
	}
	if (p->has_flags && !one_of(4)) {
		link.has_flags = true;
		link.flags = TOPOLOGY_LINK_FLAG_ENABLED | (one_of(6) ? TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 : 0) |
			     (one_of(6) ? TOPOLOGY_LINK_FLAG_NO_ATOMICS_64 : 0) |
			     (one_of(10) ? TOPOLOGY_LINK_FLAG_NO_P2P_DMA : 0);
	}
	must(topology_node_add_link(node_of(t, from), &link));
	/* A second one, as from p2p_links. */
	if (one_of(15)) {
		link.type = TOPOLOGY_LINK_PCIE;
		link.is_p2p = true;
		if (link.has_flags)
			link.flags = TOPOLOGY_LINK_FLAG_ENABLED;
		must(topology_node_add_link(node_of(t, from), &link));
	}
}

static struct topology *random_machine(const struct profile *p, uint32_t first_gpu_id)
{
	uint32_t cpu[MAX_GPUS], hive[MAX_GPUS], gpu = p->nr_cpus;
	struct topology *t = machine_new(p->nr_cpus);
	struct topology_node *node;

	for (uint32_t i = 0; i < p->nr_gpus; i++) {
		must(topology_add_node(t, gpu + i, &node));
		set_prop(node, TOPOLOGY_GPU_ID, first_gpu_id + i);
		set_prop(node, TOPOLOGY_DRM_RENDER_MINOR, 128 + i);
		set_prop(node, TOPOLOGY_DEVICE_ID, 0x738c + below(p->models));
		set_prop(node, TOPOLOGY_VRAM_SIZE, (1 + below(p->sizes)) * GIB);
		set_prop(node, TOPOLOGY_GFX_TARGET_VERSION, 90402);
		set_prop(node, TOPOLOGY_LOCATION_ID, (1 + i / p->partitions) << 8 | i % p->partitions);
		cpu[i] = below(p->nr_cpus);
		hive[i] = !p->hive_size ? (i && below(3) ? hive[i - 1] : i)
			  : p->shuffled ? below(1 + p->nr_gpus / p->hive_size)
					: i / p->hive_size;
	}
	for (uint32_t i = 0; i < p->nr_gpus; i++) {
		if (below(100) >= p->lacks_host)
			random_link(t, p, gpu + i, cpu[i], one_of(20) ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE);
		if (below(100) >= p->lacks_host)
			random_link(t, p, cpu[i], gpu + i, one_of(20) ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE);
		for (uint32_t j = 0; j < p->nr_gpus; j++) {
			if (i != j && hive[i] == hive[j] && below(100) < p->xgmi)
				random_link(t, p, gpu + i, gpu + j, TOPOLOGY_LINK_XGMI);
			else if (i != j && below(100) < p->pcie)
				random_link(t, p, gpu + i, gpu + j, TOPOLOGY_LINK_PCIE);
		}
	}
	must(topology_finish(t));
	return t;
}

struct test_case {
	struct topology *saved, *local;
	struct match_options options; /* points into this struct */
	const char *unusable[TOPOLOGY_MAX_NODES];
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	struct gpu_work work[TOPOLOGY_MAX_NODES];
	struct device_map_entry pair;
};

static void random_use(struct test_case *c)
{
	for (unsigned int i = 0; i < c->local->nr_nodes; i++) {
		bool has_queues = one_of(4);

		c->unusable[i] = one_of(12) ? "somebody" : NULL;
		c->usage[i] = (struct gpu_usage){ has_queues, !one_of(8), (has_queues ? below(9) : 8) * GIB };
		/* What is free is that of the whole device. */
		if (i && topology_same_device(c->local->nodes[i], c->local->nodes[i - 1])) {
			c->usage[i].vram_known = c->usage[i - 1].vram_known;
			c->usage[i].vram_free = c->usage[i - 1].vram_free;
		}
	}
	for (unsigned int i = 0; i < c->saved->nr_nodes; i++)
		c->work[i] = (struct gpu_work){ .vram_needed = one_of(2) ? below(9) * GIB : 0, .has_queues = one_of(3) };
	c->options.unusable = one_of(2) ? c->unusable : NULL;
	c->options.usage = one_of(3) ? NULL : c->usage;
	c->options.work = one_of(3) ? NULL : c->work;
	c->options.keeps_ids = one_of(8);
}

/* A pair that the user names. */
static void random_pair(struct test_case *c, uint32_t first_local_id, uint32_t nr_cpus)
{
	uint32_t saved = below(c->saved->nr_nodes), local = below(c->local->nr_nodes);

	if (!topology_is_gpu(c->saved->nodes[saved]) || !topology_is_gpu(c->local->nodes[local]) ||
	    (c->options.unusable && c->unusable[local]))
		return;
	c->pair.saved = (struct device_ref){ DEVICE_REF_GPU_ID, topology_gpu_id(c->saved->nodes[saved]) };
	c->pair.local = (struct device_ref){ DEVICE_REF_GPU_ID, first_local_id + local - nr_cpus };
	c->options.pairs = &c->pair;
	c->options.nr_pairs = 1;
}

static void case_init(struct test_case *c)
{
	uint32_t first_local_id = one_of(2) ? 0xa000 : 0xb000;
	struct profile p = random_profile(), q = p;

	memset(c, 0, sizeof(*c));
	q.nr_cpus = one_of(2) ? 1 + below(3) : q.nr_cpus;
	q.xgmi = one_of(4) ? 100 : q.xgmi;
	q.pcie = one_of(4) ? 100 : q.pcie;
	if (one_of(4)) {
		only_hives(&p);
		q = p;
	}
	q.nr_gpus += below(3);
	c->saved = random_machine(&p, 0xa000);
	c->local = random_machine(&q, first_local_id);
	for (unsigned int check = 0; check < MATCH_NR_CHECKS; check++)
		c->options.relaxed[check] = one_of(8);
	random_use(c);
	if (one_of(8))
		random_pair(c, first_local_id, q.nr_cpus);
}

static void case_done(struct test_case *c)
{
	topology_free(c->saved);
	topology_free(c->local);
}

/* ---- the rules ---- */

static int rank(const struct topology_link *link)
{
	return !link ? 0 : link->type == TOPOLOGY_LINK_XGMI ? 2 : 1;
}

static uint32_t bandwidth(const struct topology_link *link)
{
	return link->type == TOPOLOGY_LINK_XGMI && link->has_bandwidth ? link->max_bandwidth : 0;
}

static bool serves_peers(const struct topology_link *link)
{
	return !link->has_flags || !(link->flags & TOPOLOGY_LINK_FLAG_NO_P2P_DMA);
}

static bool has_atomics_of(const struct topology_link *link, const struct topology_link *wanted)
{
	const uint32_t no_atomics = TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 | TOPOLOGY_LINK_FLAG_NO_ATOMICS_64;

	return !link->has_flags || !wanted->has_flags || !(link->flags & ~wanted->flags & no_atomics);
}

/* NULL: there is none. @best: of another pair of nodes. */
static const struct topology_link *best_link(const struct topology *t, unsigned int from, unsigned int to, bool peer,
					     const struct topology_link *best)
{
	for (unsigned int i = 0; i < t->nodes[from]->nr_links; i++) {
		const struct topology_link *link = &t->nodes[from]->links[i];

		if (link->to != (int)to || (peer && !serves_peers(link)))
			continue;
		if (rank(link) > rank(best) || (rank(link) == rank(best) && bandwidth(link) > bandwidth(best)))
			best = link;
	}
	return best;
}

static const struct topology_link *host_link(const struct topology *t, unsigned int gpu, bool from_host)
{
	const struct topology_link *best = NULL;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (topology_has_cpu(t->nodes[i]))
			best = from_host ? best_link(t, i, gpu, false, best) : best_link(t, gpu, i, false, best);
	return best;
}

static bool host_fits(const struct test_case *c, unsigned int saved, unsigned int local, bool from_host)
{
	const struct topology_link *wanted = host_link(c->saved, saved, from_host);
	const struct topology_link *found = host_link(c->local, local, from_host);

	return !wanted || (rank(found) >= rank(wanted) && has_atomics_of(found, wanted));
}

static bool pair_fits(const struct test_case *c, unsigned int saved, unsigned int local)
{
	if (!c->options.nr_pairs)
		return true;
	return (c->pair.saved.value == topology_gpu_id(c->saved->nodes[saved])) ==
	       (c->pair.local.value == topology_gpu_id(c->local->nodes[local]));
}

static bool room_fits(const struct test_case *c, unsigned int saved, unsigned int local)
{
	if (!c->options.work || !c->options.usage || !c->usage[local].vram_known)
		return true;
	return c->work[saved].vram_needed <= c->usage[local].vram_free;
}

static bool one_fits(const struct test_case *c, unsigned int saved, unsigned int local)
{
	const struct topology_node *a = c->saved->nodes[saved], *v = c->local->nodes[local];

	if (!topology_is_gpu(v) || (c->options.unusable && c->unusable[local]) || !pair_fits(c, saved, local) ||
	    topology_get(a, TOPOLOGY_DEVICE_ID) != topology_get(v, TOPOLOGY_DEVICE_ID))
		return false;
	if (!c->options.relaxed[MATCH_CHECK_VRAM_SIZE] &&
	    (topology_get(a, TOPOLOGY_VRAM_SIZE) > topology_get(v, TOPOLOGY_VRAM_SIZE) || !room_fits(c, saved, local)))
		return false;
	return host_fits(c, saved, local, false) && host_fits(c, saved, local, true);
}

/* Does some link from @v to @u serve for the one from @a to @b? */
static bool link_fits(const struct test_case *c, unsigned int a, unsigned int b, unsigned int v, unsigned int u)
{
	const struct topology_link *wanted = best_link(c->saved, a, b, true, NULL);

	for (unsigned int i = 0; wanted && i < c->local->nodes[v]->nr_links; i++) {
		const struct topology_link *link = &c->local->nodes[v]->links[i];

		if (link->to == (int)u && serves_peers(link) && rank(link) >= rank(wanted) &&
		    has_atomics_of(link, wanted) &&
		    (!bandwidth(wanted) || !link->has_bandwidth || link->max_bandwidth >= bandwidth(wanted)))
			return true;
	}
	return !wanted;
}

static bool on_one_numa_node(const struct topology *t, unsigned int a, unsigned int b)
{
	return topology_has(t->nodes[a], TOPOLOGY_NUMA_NODE) && topology_has(t->nodes[b], TOPOLOGY_NUMA_NODE) &&
	       topology_get(t->nodes[a], TOPOLOGY_NUMA_NODE) == topology_get(t->nodes[b], TOPOLOGY_NUMA_NODE);
}

static bool two_fit(const struct test_case *c, unsigned int a, unsigned int b, unsigned int v, unsigned int u)
{
	if (v == u || !link_fits(c, a, b, v, u) || !link_fits(c, b, a, u, v))
		return false;
	return c->options.relaxed[MATCH_CHECK_NUMA] || !on_one_numa_node(c->saved, a, b) ||
	       on_one_numa_node(c->local, v, u);
}

/* ---- all maps ---- */

/* Which saved GPUs have to be on idle local ones, as far as each has some. */
enum idle { IDLE_WORK, IDLE_QUEUES, IDLE_NONE };

static bool is_busy(const struct test_case *c, unsigned int local)
{
	return c->options.usage && !c->options.keeps_ids && c->usage[local].has_queues;
}

static bool wants_idle(const struct test_case *c, unsigned int saved, enum idle idle)
{
	bool has_idle = false;

	if (idle == IDLE_NONE ||
	    (c->options.work && !c->work[saved].has_queues && (idle == IDLE_QUEUES || !c->work[saved].vram_needed)))
		return false;
	for (unsigned int v = 0; v < c->local->nr_nodes; v++)
		has_idle |= !is_busy(c, v) && one_fits(c, saved, v);
	return has_idle;
}

struct map {
	unsigned int nr;
	unsigned int saved[MAX_GPUS], local[MAX_GPUS];
};

/* Whether all that is on the last one's device has room there. */
static bool device_fits(const struct test_case *c, const struct map *map)
{
	unsigned int local = map->local[map->nr - 1];
	uint64_t needed = 0;

	if (!c->options.work || !c->options.usage || !c->usage[local].vram_known ||
	    c->options.relaxed[MATCH_CHECK_VRAM_SIZE])
		return true;
	for (unsigned int i = 0; i < map->nr; i++)
		if (topology_get(c->local->nodes[map->local[i]], TOPOLOGY_LOCATION_ID) >> 3 ==
		    topology_get(c->local->nodes[local], TOPOLOGY_LOCATION_ID) >> 3)
			needed += c->work[map->saved[i]].vram_needed;
	return needed <= c->usage[local].vram_free;
}

/* Whether the last one may be there, with those before it. */
static bool last_fits(const struct test_case *c, const struct map *map, enum idle idle)
{
	unsigned int last = map->nr - 1;

	if (!one_fits(c, map->saved[last], map->local[last]) || !device_fits(c, map) ||
	    (is_busy(c, map->local[last]) && wants_idle(c, map->saved[last], idle)))
		return false;
	for (unsigned int i = 0; i < last; i++)
		if (!two_fit(c, map->saved[i], map->saved[last], map->local[i], map->local[last]))
			return false;
	return true;
}

/* Whether there is a map; the saved nodes from @next on are left. */
static bool can_complete(const struct test_case *c, struct map *map, unsigned int next, enum idle idle)
{
	while (next < c->saved->nr_nodes && !topology_is_gpu(c->saved->nodes[next]))
		next++;
	if (next == c->saved->nr_nodes)
		return true;
	map->saved[map->nr++] = next;
	for (unsigned int v = 0; v < c->local->nr_nodes; v++) {
		map->local[map->nr - 1] = v;
		if (last_fits(c, map, idle) && can_complete(c, map, next + 1, idle))
			return true;
	}
	map->nr--;
	return false;
}

static bool keeps_rules(const struct test_case *c, const struct match_map *found, enum idle idle)
{
	struct map map = { 0 };

	for (unsigned int i = 0; i < found->nr_pairs; i++) {
		map.saved[map.nr] = found->pairs[i].saved;
		map.local[map.nr++] = found->pairs[i].local;
		if (!last_fits(c, &map, idle))
			return false;
	}
	return map.nr == topology_count_gpus(c->saved);
}

static void compare(const struct test_case *c, uint64_t round, unsigned int *nr_found)
{
	enum idle idle = IDLE_WORK;
	struct match_map *map = NULL;
	int err = match_devices(c->saved, c->local, &c->options, &map);

	while (idle <= IDLE_NONE && !can_complete(c, &(struct map){ 0 }, 0, idle))
		idle++;
	if (err != (idle > IDLE_NONE ? -ENODEV : 0))
		fail_msg("round %" PRIu64 ": brute force finds %s map, the matcher %d %s", round,
			 idle > IDLE_NONE ? "no" : "a", err, fail_text());
	if (!err && !keeps_rules(c, map, idle))
		fail_msg("round %" PRIu64 ": the map does not keep the rules", round);
	*nr_found += !err;
	fail_clear();
	free(map);
}

TEST(match_agrees_with_brute_force)
{
	uint64_t rounds = number_from_env("ORACLE_ROUNDS", ROUNDS);
	unsigned int nr_found = 0;

	random_state = number_from_env("ORACLE_SEED", 1);
	for (uint64_t round = 0; round < rounds; round++) {
		struct test_case c;

		case_init(&c);
		compare(&c, round, &nr_found);
		case_done(&c);
	}
	assert_in_range(nr_found, rounds / 10, rounds - rounds / 10);
}

UNIT_MAIN(NULL, NULL)
