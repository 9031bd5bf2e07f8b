// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: the rules, and the assignment problem that follows from them.
 *
 * Each rule is one function over topologies and settings; the search knows
 * none of them, and the explanation of a refusal asks the same functions.
 */
#include "match/internal.h"
#include "amdgpu_plugin_util.h"

/*
 * What keeping a GPU's name is worth: more same gpu ids come before any number
 * of same PCI addresses, and these before any number of same NUMA nodes.
 */
#define WEIGHT_NUMA   1U
#define WEIGHT_PCI    (TOPOLOGY_MAX_NODES + 1U)
#define WEIGHT_GPU_ID (WEIGHT_PCI * (TOPOLOGY_MAX_NODES + 1U))

#define NO_ATOMICS (TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 | TOPOLOGY_LINK_FLAG_NO_ATOMICS_64)

static bool checked(const struct match_problem *mp, enum setting id)
{
	return id == SETTING_NONE || mp->settings->flag[id];
}

static bool check_links(const struct match_problem *mp)
{
	return !mp->links_relaxed && mp->settings->flag[SETTING_TOPOLOGY_CHECK];
}

static bool prop_fits(enum topology_rule rule, uint64_t wanted, uint64_t found)
{
	switch (rule) {
	case TOPOLOGY_RULE_EQUAL:
		return found == wanted;
	case TOPOLOGY_RULE_AT_LEAST:
		return found >= wanted;
	case TOPOLOGY_RULE_CAPABILITY:
		return !((found ^ wanted) & topology_capability_mask());
	default:
		return true;
	}
}

static struct obstacle check_props(const struct match_problem *mp, const struct topology_node *saved,
				   const struct topology_node *local)
{
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		const struct topology_prop_info *info = topology_prop_info(i);
		uint64_t wanted = saved->value[i], found = local->value[i];

		if (!topology_has(saved, i) || !topology_has(local, i) || !checked(mp, info->relaxed_by))
			continue;
		if (!prop_fits(info->rule, wanted, found))
			return (struct obstacle){ .kind = OBSTACLE_PROP,
						  .prop = i,
						  .wanted = wanted,
						  .found = found,
						  .relaxed_by = info->relaxed_by };
	}
	return (struct obstacle){ .kind = OBSTACLE_NONE };
}

static enum link_rank link_rank(const struct topology_link *link)
{
	return link->type == TOPOLOGY_LINK_XGMI ? LINK_XGMI : LINK_PCIE;
}

/* Only what both sides know is compared. */
static bool flags_serve(const struct topology_link *link, const struct link_demand *demand)
{
	return !demand->has_flags || !link->has_flags || !(link->flags & ~demand->flags & NO_ATOMICS);
}

/* A link over which the GPUs cannot reach each other's memory is none, for this purpose. */
static bool is_peer_link(const struct topology_link *link)
{
	return !(link->has_flags && (link->flags & TOPOLOGY_LINK_FLAG_NO_P2P_DMA));
}

static struct link_demand as_demand(const struct topology_link *link)
{
	struct link_demand demand = { .rank = link_rank(link), .has_flags = link->has_flags, .flags = link->flags };

	if (demand.rank == LINK_XGMI && link->has_bandwidth)
		demand.max_bandwidth = link->max_bandwidth;
	return demand;
}

static bool is_better(const struct link_demand *a, const struct link_demand *b)
{
	return a->rank != b->rank ? a->rank > b->rank : a->max_bandwidth > b->max_bandwidth;
}

static struct link_demand best_link(const struct topology_node *from, unsigned int to)
{
	struct link_demand best = { .rank = LINK_NONE };

	for (unsigned int i = 0; i < from->nr_links; i++) {
		struct link_demand demand;

		if (from->links[i].to != (int)to || !is_peer_link(&from->links[i]))
			continue;
		demand = as_demand(&from->links[i]);
		if (is_better(&demand, &best))
			best = demand;
	}
	return best;
}

/* The best link between a GPU and any CPU node, in one direction. */
static struct link_demand host_link(const struct topology *t, unsigned int gpu, bool from_host)
{
	struct link_demand best = { .rank = LINK_NONE };

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const struct topology_node *from = t->nodes[i];

		if (from_host ? !topology_has_cpu(from) : i != gpu)
			continue;
		for (unsigned int l = 0; l < from->nr_links; l++) {
			const struct topology_link *link = &from->links[l];
			struct link_demand demand = as_demand(link);

			if (from_host ? link->to != (int)gpu : !topology_has_cpu(t->nodes[link->to]))
				continue;
			if (is_better(&demand, &best))
				best = demand;
		}
	}
	return best;
}

void rule_prepare(struct match_problem *mp)
{
	for (int from_host = 0; from_host < 2; from_host++) {
		for (unsigned int i = 0; i < mp->n; i++)
			mp->saved_host[from_host][i] = host_link(mp->saved, mp->saved_node[i], from_host);
		for (unsigned int v = 0; v < mp->m; v++)
			mp->local_host[from_host][v] = host_link(mp->local, mp->local_node[v], from_host);
	}
}

static struct obstacle check_host_link(const struct match_problem *mp, unsigned int thing, unsigned int place)
{
	for (int from_host = 0; from_host < 2; from_host++) {
		struct link_demand wanted = mp->saved_host[from_host][thing];
		struct link_demand found = mp->local_host[from_host][place];
		struct topology_link link = { .has_flags = found.has_flags, .flags = found.flags };

		if (found.rank >= wanted.rank && (wanted.rank == LINK_NONE || flags_serve(&link, &wanted)))
			continue;
		return (struct obstacle){ .kind = OBSTACLE_HOST_LINK,
					  .wanted = wanted.rank,
					  .found = found.rank,
					  .relaxed_by = SETTING_TOPOLOGY_CHECK,
					  .from_host = from_host };
	}
	return (struct obstacle){ .kind = OBSTACLE_NONE };
}

struct obstacle rule_gpu(const struct match_problem *mp, unsigned int thing, unsigned int place)
{
	struct obstacle obstacle;

	if (mp->pinned[thing] >= 0 && mp->pinned[thing] != (int)place)
		return (struct obstacle){ .kind = OBSTACLE_PINNED, .relaxed_by = SETTING_DEVICE_MAP };
	obstacle = check_props(mp, saved_gpu(mp, thing), local_gpu(mp, place));
	if (obstacle.kind == OBSTACLE_NONE && check_links(mp))
		obstacle = check_host_link(mp, thing, place);
	return obstacle;
}

struct link_demand rule_link_demand(const struct match_problem *mp, unsigned int from, unsigned int to)
{
	if (!check_links(mp))
		return (struct link_demand){ .rank = LINK_NONE };
	return best_link(saved_gpu(mp, from), mp->saved_node[to]);
}

bool rule_link_serves(const struct topology_link *link, const struct link_demand *demand)
{
	if (!is_peer_link(link) || link_rank(link) < demand->rank || !flags_serve(link, demand))
		return false;
	return !demand->max_bandwidth || !link->has_bandwidth || link->max_bandwidth >= demand->max_bandwidth;
}

struct link_demand local_link(const struct match_problem *mp, unsigned int from, unsigned int to)
{
	return best_link(local_gpu(mp, from), mp->local_node[to]);
}

bool rule_numa_demand(const struct match_problem *mp, unsigned int a, unsigned int b)
{
	const struct topology_node *x = saved_gpu(mp, a), *y = saved_gpu(mp, b);

	return !mp->numa_relaxed && mp->settings->flag[SETTING_NUMA_CHECK] && topology_has(x, TOPOLOGY_NUMA_NODE) &&
	       topology_has(y, TOPOLOGY_NUMA_NODE) &&
	       topology_get(x, TOPOLOGY_NUMA_NODE) == topology_get(y, TOPOLOGY_NUMA_NODE);
}

bool rule_numa_serves(const struct match_problem *mp, unsigned int a, unsigned int b)
{
	const struct topology_node *x = local_gpu(mp, a), *y = local_gpu(mp, b);

	return topology_has(x, TOPOLOGY_NUMA_NODE) && topology_has(y, TOPOLOGY_NUMA_NODE) &&
	       topology_get(x, TOPOLOGY_NUMA_NODE) == topology_get(y, TOPOLOGY_NUMA_NODE);
}

/* The different demands of the saved links, and the local links that serve each of them. */
struct demand_table {
	unsigned int n; /* including the unused 0: no demand */
	struct link_demand demand[ASSIGN_MAX_KINDS];
	uint64_t *serves; /* n * m sets: [demand][from] */
};

/* What holds between two things: a demand in each direction, and the NUMA rule. */
struct pair_kind {
	uint16_t out;
	uint16_t in;
	bool numa;
};

struct kind_table {
	unsigned int n; /* including the unused 0 */
	struct pair_kind kind[ASSIGN_MAX_KINDS];
};

static int demand_index(struct demand_table *table, const struct link_demand *demand)
{
	if (demand->rank == LINK_NONE)
		return 0;
	for (unsigned int i = 1; i < table->n; i++) {
		const struct link_demand *known = &table->demand[i];

		if (known->rank == demand->rank && known->max_bandwidth == demand->max_bandwidth &&
		    known->has_flags == demand->has_flags && known->flags == demand->flags)
			return (int)i;
	}
	if (table->n == ASSIGN_MAX_KINDS)
		return -E2BIG;
	table->demand[table->n] = *demand;
	return (int)table->n++;
}

static int kind_index(struct kind_table *table, const struct pair_kind *kind)
{
	if (!kind->out && !kind->in && !kind->numa)
		return 0;
	for (unsigned int i = 1; i < table->n; i++) {
		const struct pair_kind *known = &table->kind[i];

		if (known->out == kind->out && known->in == kind->in && known->numa == kind->numa)
			return (int)i;
	}
	if (table->n == ASSIGN_MAX_KINDS)
		return -E2BIG;
	table->kind[table->n] = *kind;
	return (int)table->n++;
}

/* The demand of each ordered pair of things, as an index: demand_of[from * n + to]. */
static int collect_demands(const struct match_problem *mp, struct demand_table *table, uint16_t *demand_of)
{
	for (unsigned int i = 0; i < mp->n; i++) {
		for (unsigned int j = 0; j < mp->n; j++) {
			struct link_demand demand = { .rank = LINK_NONE };
			int index;

			if (i != j)
				demand = rule_link_demand(mp, i, j);
			index = demand_index(table, &demand);
			if (index < 0)
				return index;
			demand_of[i * mp->n + j] = (uint16_t)index;
		}
	}
	return 0;
}

static int collect_kinds(const struct match_problem *mp, const uint16_t *demand_of, struct kind_table *kinds,
			 uint16_t *kind_of)
{
	for (unsigned int i = 0; i < mp->n; i++) {
		for (unsigned int j = 0; j < mp->n; j++) {
			struct pair_kind kind = { .out = demand_of[i * mp->n + j], .in = demand_of[j * mp->n + i] };
			int index;

			kind.numa = i != j && rule_numa_demand(mp, i, j);
			index = kind_index(kinds, &kind);
			if (index < 0)
				return index;
			kind_of[i * mp->n + j] = (uint16_t)index;
		}
	}
	return 0;
}

static int collect_serving_links(const struct match_problem *mp, struct demand_table *table)
{
	size_t words = ASSIGN_WORDS(mp->m);
	int place_of[TOPOLOGY_MAX_NODES];

	table->serves = calloc(table->n * mp->m * words + 1, sizeof(*table->serves));
	if (!table->serves)
		return -ENOMEM;
	memset(place_of, -1, sizeof(place_of));
	for (unsigned int v = 0; v < mp->m; v++)
		place_of[mp->local_node[v]] = (int)v;
	for (unsigned int v = 0; v < mp->m; v++) {
		const struct topology_node *node = local_gpu(mp, v);

		for (unsigned int l = 0; l < node->nr_links; l++) {
			int u = place_of[node->links[l].to];

			for (unsigned int d = 1; u >= 0 && d < table->n; d++) {
				if (rule_link_serves(&node->links[l], &table->demand[d]))
					assign_set_add(table->serves + (d * mp->m + v) * words, (unsigned int)u);
			}
		}
	}
	return 0;
}

static bool kind_allows(const struct match_problem *mp, const struct demand_table *demands,
			const struct pair_kind *kind, unsigned int v, unsigned int u)
{
	size_t words = ASSIGN_WORDS(mp->m);

	if (kind->out && !assign_set_has(demands->serves + (kind->out * mp->m + v) * words, u))
		return false;
	if (kind->in && !assign_set_has(demands->serves + (kind->in * mp->m + u) * words, v))
		return false;
	return !kind->numa || rule_numa_serves(mp, v, u);
}

/* Returns whether the kind rules anything out. */
static bool fill_rows(const struct match_problem *mp, const struct demand_table *demands, const struct pair_kind *kind,
		      unsigned int index, struct assign_problem *p)
{
	bool restricts = false;

	for (unsigned int v = 0; v < mp->m; v++) {
		for (unsigned int u = 0; u < mp->m; u++) {
			if (u == v)
				continue;
			if (kind_allows(mp, demands, kind, v, u))
				assign_set_add(assign_row(p, index, v), u);
			else
				restricts = true;
		}
	}
	return restricts;
}

/* What is the case for all local GPUs, e.g. on a machine of one NUMA node, is no restriction. */
static void fill_kinds(const struct match_problem *mp, const struct demand_table *demands,
		       const struct kind_table *kinds, const uint16_t *kind_of, struct assign_problem *p)
{
	bool restricts[ASSIGN_MAX_KINDS] = { false };

	for (unsigned int k = 1; k < kinds->n; k++)
		restricts[k] = fill_rows(mp, demands, &kinds->kind[k], k, p);
	for (size_t i = 0; i < (size_t)mp->n * mp->n; i++)
		p->kind[i] = restricts[kind_of[i]] ? kind_of[i] : 0;
}

static uint32_t nearness(const struct topology_node *saved, const struct topology_node *local)
{
	static const enum topology_prop pci[] = { TOPOLOGY_DOMAIN, TOPOLOGY_LOCATION_ID };
	bool same_pci = true;
	uint32_t weight = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pci); i++)
		same_pci = same_pci && topology_has(saved, pci[i]) && topology_has(local, pci[i]) &&
			   topology_get(saved, pci[i]) == topology_get(local, pci[i]);
	if (topology_gpu_id(saved) == topology_gpu_id(local))
		weight += WEIGHT_GPU_ID;
	if (same_pci)
		weight += WEIGHT_PCI;
	if (topology_has(saved, TOPOLOGY_NUMA_NODE) && topology_has(local, TOPOLOGY_NUMA_NODE) &&
	    topology_get(saved, TOPOLOGY_NUMA_NODE) == topology_get(local, TOPOLOGY_NUMA_NODE))
		weight += WEIGHT_NUMA;
	return weight;
}

static void fill_domains(const struct match_problem *mp, struct assign_problem *p)
{
	for (unsigned int i = 0; i < mp->n; i++) {
		for (unsigned int v = 0; v < mp->m; v++) {
			if (rule_gpu(mp, i, v).kind == OBSTACLE_NONE)
				assign_set_add(assign_domain(p, i), v);
			p->weight[i * mp->m + v] = nearness(saved_gpu(mp, i), local_gpu(mp, v));
		}
	}
}

static int build_with(const struct match_problem *mp, struct demand_table *demands, struct kind_table *kinds,
		      uint16_t *pairs, struct assign_problem *ret)
{
	size_t n_pairs = (size_t)mp->n * mp->n;
	int r;

	r = collect_demands(mp, demands, pairs);
	if (r == 0)
		r = collect_kinds(mp, pairs, kinds, pairs + n_pairs);
	if (r == 0)
		r = collect_serving_links(mp, demands);
	if (r == 0)
		r = assign_problem_init(ret, mp->n, mp->m, kinds->n);
	if (r < 0)
		return r;
	fill_kinds(mp, demands, kinds, pairs + n_pairs, ret);
	fill_domains(mp, ret);
	return 0;
}

int match_build(const struct match_problem *mp, struct assign_problem *ret)
{
	_cleanup_free_ uint16_t *pairs = calloc(2 * (size_t)mp->n * mp->n + 1, sizeof(*pairs));
	_cleanup_free_ struct demand_table *demands = malloc(sizeof(*demands));
	_cleanup_free_ struct kind_table *kinds = malloc(sizeof(*kinds));
	int r;

	if (!pairs || !demands || !kinds)
		return -ENOMEM;
	demands->n = 1;
	demands->serves = NULL;
	kinds->n = 1;
	r = build_with(mp, demands, kinds, pairs, ret);
	free(demands->serves);
	return r;
}
