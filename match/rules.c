// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: the rules, and the problem that they pose.
 *
 * Each rule is one function over topologies and options. The search sees none
 * of them; the report asks the same functions.
 */
#include "match/internal.h"

_Static_assert(TOPOLOGY_MAX_NODES <= PROBLEM_MAX, "each GPU is a thing or a place");

static const char *const check_names[MATCH_NR_CHECKS] = {
	[MATCH_CHECK_FW_VERSION] = "KFD_FW_VER_CHECK",
	[MATCH_CHECK_SDMA_FW_VERSION] = "KFD_SDMA_FW_VER_CHECK",
	[MATCH_CHECK_CACHES_COUNT] = "KFD_CACHES_COUNT_CHECK",
	[MATCH_CHECK_NUM_GWS] = "KFD_NUM_GWS_CHECK",
	[MATCH_CHECK_VRAM_SIZE] = "KFD_VRAM_SIZE_CHECK",
	[MATCH_CHECK_CAPABILITY] = "KFD_CAPABILITY_CHECK",
	[MATCH_CHECK_NUMA] = "KFD_NUMA_CHECK",
	[MATCH_CHECK_TOPOLOGY] = "KFD_TOPOLOGY_CHECK",
};

enum rule { RULE_NONE, RULE_EQUAL, RULE_AT_LEAST, RULE_CAPABILITY };

struct prop_rule {
	enum rule rule;
	enum match_check check;
};

#define EQUAL		 { RULE_EQUAL, MATCH_CHECK_ALWAYS }
#define AT_LEAST(check_) { RULE_AT_LEAST, MATCH_CHECK_##check_ }

/* Properties that are not listed have no rule. */
static const struct prop_rule prop_rules[TOPOLOGY_NR_PROPS] = {
	[TOPOLOGY_VENDOR_ID] = EQUAL,
	[TOPOLOGY_DEVICE_ID] = EQUAL,
	[TOPOLOGY_GFX_TARGET_VERSION] = EQUAL,
	[TOPOLOGY_NUM_XCC] = EQUAL,
	[TOPOLOGY_SIMD_COUNT] = EQUAL,
	[TOPOLOGY_SIMD_PER_CU] = EQUAL,
	[TOPOLOGY_CU_PER_SIMD_ARRAY] = EQUAL,
	[TOPOLOGY_SIMD_ARRAYS_PER_ENGINE] = EQUAL,
	[TOPOLOGY_ARRAY_COUNT] = EQUAL,
	[TOPOLOGY_MAX_WAVES_PER_SIMD] = EQUAL,
	[TOPOLOGY_MAX_SLOTS_SCRATCH_CU] = EQUAL,
	[TOPOLOGY_WAVE_FRONT_SIZE] = EQUAL,
	[TOPOLOGY_LDS_SIZE_IN_KB] = EQUAL,
	[TOPOLOGY_NUM_SDMA_ENGINES] = EQUAL,
	[TOPOLOGY_NUM_SDMA_XGMI_ENGINES] = EQUAL,
	[TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE] = EQUAL,
	[TOPOLOGY_NUM_CP_QUEUES] = EQUAL,
	[TOPOLOGY_VRAM_PUBLIC] = EQUAL,
	[TOPOLOGY_SDMA_PARTITION] = EQUAL,
	[TOPOLOGY_VRAM_SIZE] = AT_LEAST(VRAM_SIZE),
	[TOPOLOGY_NUM_GWS] = AT_LEAST(NUM_GWS),
	[TOPOLOGY_CACHES_COUNT] = AT_LEAST(CACHES_COUNT),
	[TOPOLOGY_FW_VERSION] = AT_LEAST(FW_VERSION),
	[TOPOLOGY_SDMA_FW_VERSION] = AT_LEAST(SDMA_FW_VERSION),
	[TOPOLOGY_CAPABILITY] = { RULE_CAPABILITY, MATCH_CHECK_CAPABILITY },
};

/*
 * The bits of "capability" that the ROCm runtime and compiled code act on. The others serve debuggers (watch points, trap
 * debug, precise ALU), monitors (memory EDC, RAS) or the kernel itself (hot pluggable, shared with graphics, idle event,
 * per queue reset), and two kernels may compute them differently for one GPU.
 */
static const struct {
	uint32_t bits;
	const char *name;
} capability_bits[] = {
	{ 0x00000002, "ATS" },			/* host memory is reached by host page tables */
	{ 0x00000008, "queue size power of 2" }, /* user space allocates the rings */
	{ 0x00000010, "queue size 32 bit" },
	{ 0x00000040, "VA limit" },		 /* layout of the address space */
	{ 0x00003000, "doorbell type" },	 /* width of what is written to a doorbell */
	{ 0x00004000, "AQL queue double map" },  /* ring layout */
	{ 0x03c00000, "ASIC revision" },	 /* libraries choose kernels by it */
	{ 0x04000000, "SRAM EDC" },		 /* part of the code object target (sramecc) */
	{ 0x08000000, "SVM" },			 /* how the runtime manages memory */
	{ 0x10000000, "coherent host access" },  /* fine-grained memory */
};

const char *match_check_name(enum match_check check)
{
	return check_names[check];
}

bool rule_is_at_least(enum topology_prop prop)
{
	return prop_rules[prop].rule == RULE_AT_LEAST;
}

const char *rule_capability_difference(uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < ARRAY_SIZE(capability_bits); i++)
		if ((a ^ b) & capability_bits[i].bits)
			return capability_bits[i].name;
	return NULL;
}

static bool checked(const struct match *m, enum match_check check)
{
	return check == MATCH_CHECK_ALWAYS || !m->options->relaxed[check];
}

/* ---- one GPU ---- */

static bool prop_fits(enum rule rule, uint64_t wanted, uint64_t found)
{
	switch (rule) {
	case RULE_EQUAL:
		return found == wanted;
	case RULE_AT_LEAST:
		return found >= wanted;
	case RULE_CAPABILITY:
		return !rule_capability_difference(wanted, found);
	default:
		return true;
	}
}

static struct obstacle check_props(const struct match *m, const struct topology_node *saved,
				   const struct topology_node *local)
{
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		uint64_t wanted = topology_get(saved, i), found = topology_get(local, i);
		const struct prop_rule *rule = &prop_rules[i];

		if (!topology_has(saved, i) || !topology_has(local, i) || !checked(m, rule->check))
			continue;
		if (!prop_fits(rule->rule, wanted, found))
			return (struct obstacle){
				.kind = OBSTACLE_PROP, .prop = i, .wanted = wanted, .found = found, .check = rule->check
			};
	}
	return (struct obstacle){ .kind = OBSTACLE_NONE };
}

static enum link_rank link_rank(const struct topology_link *link)
{
	return link->type == TOPOLOGY_LINK_XGMI ? LINK_XGMI : LINK_PCIE;
}

/* Does a link have the atomic operations of the saved one? Only what both sides know is compared. */
static bool flags_serve(bool has_flags, uint32_t flags, const struct link_demand *demand)
{
	return !demand->has_flags || !has_flags || !(flags & ~demand->flags & NO_ATOMICS);
}

/* A link without access to the peer's memory does not count. */
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

/* The best of the links from a node to another one; @peer: for access to the other one's memory. */
static struct link_demand best_link(const struct topology_node *from, unsigned int to, bool peer)
{
	struct link_demand best = { .rank = LINK_NONE };

	for (unsigned int i = 0; i < from->nr_links; i++) {
		struct link_demand demand = as_demand(&from->links[i]);

		if (from->links[i].to == (int)to && (!peer || is_peer_link(&from->links[i])) && is_better(&demand, &best))
			best = demand;
	}
	return best;
}

/* The best link between a GPU and any CPU node, in one direction. */
static struct link_demand host_link(const struct topology *t, unsigned int gpu, bool from_host)
{
	struct link_demand best = { .rank = LINK_NONE };

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		struct link_demand demand =
			from_host ? best_link(t->nodes[i], gpu, false) : best_link(t->nodes[gpu], i, false);

		if (topology_has_cpu(t->nodes[i]) && is_better(&demand, &best))
			best = demand;
	}
	return best;
}

void rule_prepare(struct match *m)
{
	for (int from_host = 0; from_host < 2; from_host++) {
		for (unsigned int i = 0; i < m->nr_things; i++)
			m->saved_host[from_host][i] = host_link(m->saved, m->saved_node[i], from_host);
		for (unsigned int v = 0; v < m->nr_places; v++)
			m->local_host[from_host][v] = host_link(m->local, m->local_node[v], from_host);
	}
}

static struct obstacle check_host_link(const struct match *m, unsigned int thing, unsigned int place)
{
	for (int from_host = 0; from_host < 2; from_host++) {
		struct link_demand wanted = m->saved_host[from_host][thing];
		struct link_demand found = m->local_host[from_host][place];

		if (found.rank >= wanted.rank &&
		    (wanted.rank == LINK_NONE || flags_serve(found.has_flags, found.flags, &wanted)))
			continue;
		return (struct obstacle){ .kind = OBSTACLE_HOST_LINK,
					  .wanted = wanted.rank,
					  .found = found.rank,
					  .check = MATCH_CHECK_TOPOLOGY,
					  .from_host = from_host };
	}
	return (struct obstacle){ .kind = OBSTACLE_NONE };
}

/* Who follows another process finds that one's memory on the GPU. */
static struct obstacle check_room(const struct match *m, unsigned int thing, unsigned int place)
{
	const struct gpu_usage *usage = m->options->usage ? &m->options->usage[m->local_node[place]] : NULL;
	uint64_t needed = m->options->work ? m->options->work[m->saved_node[thing]].vram_needed : 0;

	if (!usage || !usage->knows_vram || needed <= usage->vram_free || m->follows[thing])
		return (struct obstacle){ .kind = OBSTACLE_NONE };
	return (struct obstacle){
		.kind = OBSTACLE_ROOM, .wanted = needed, .found = usage->vram_free, .check = MATCH_CHECK_VRAM_SIZE
	};
}

struct obstacle rule_gpu(const struct match *m, unsigned int thing, unsigned int place)
{
	struct obstacle obstacle;

	if (m->pinned[thing] >= 0 && m->pinned[thing] != (int)place)
		return (struct obstacle){ .kind = OBSTACLE_PINNED, .check = MATCH_CHECK_ALWAYS };
	obstacle = check_props(m, saved_gpu(m, thing), local_gpu(m, place));
	if (obstacle.kind == OBSTACLE_NONE && checked(m, MATCH_CHECK_VRAM_SIZE))
		obstacle = check_room(m, thing, place);
	if (obstacle.kind == OBSTACLE_NONE && checked(m, MATCH_CHECK_TOPOLOGY))
		obstacle = check_host_link(m, thing, place);
	return obstacle;
}

/* ---- two GPUs ---- */

struct link_demand rule_link_demand(const struct match *m, unsigned int from, unsigned int to)
{
	if (from == to || !checked(m, MATCH_CHECK_TOPOLOGY))
		return (struct link_demand){ .rank = LINK_NONE };
	return best_link(saved_gpu(m, from), m->saved_node[to], true);
}

static bool link_serves(const struct topology_link *link, const struct link_demand *demand)
{
	if (!is_peer_link(link) || link_rank(link) < demand->rank || !flags_serve(link->has_flags, link->flags, demand))
		return false;
	return !demand->max_bandwidth || !link->has_bandwidth || link->max_bandwidth >= demand->max_bandwidth;
}

static bool same_value(const struct topology_node *a, const struct topology_node *b, enum topology_prop prop)
{
	return topology_has(a, prop) && topology_has(b, prop) && topology_get(a, prop) == topology_get(b, prop);
}

bool rule_numa_demand(const struct match *m, unsigned int a, unsigned int b)
{
	return a != b && checked(m, MATCH_CHECK_NUMA) &&
	       same_value(saved_gpu(m, a), saved_gpu(m, b), TOPOLOGY_NUMA_NODE);
}

bool rule_numa_serves(const struct match *m, unsigned int a, unsigned int b)
{
	return same_value(local_gpu(m, a), local_gpu(m, b), TOPOLOGY_NUMA_NODE);
}

/* ---- the problem ---- */

/* What holds between two things: a demand in each direction, and the NUMA rule. */
struct pair_kind {
	struct link_demand out;
	struct link_demand in;
	bool numa;
};

static bool same_demand(const struct link_demand *a, const struct link_demand *b)
{
	return a->rank == b->rank && a->max_bandwidth == b->max_bandwidth && a->has_flags == b->has_flags &&
	       a->flags == b->flags;
}

/* The number of such a kind, which is added where it is new. */
static int kind_index(struct problem *p, struct pair_kind *kinds, const struct pair_kind *kind)
{
	if (kind->out.rank == LINK_NONE && kind->in.rank == LINK_NONE && !kind->numa)
		return 0;
	for (unsigned int i = 1; i < p->nr_kinds; i++)
		if (same_demand(&kinds[i].out, &kind->out) && same_demand(&kinds[i].in, &kind->in) &&
		    kinds[i].numa == kind->numa)
			return (int)i;
	if (p->nr_kinds == PROBLEM_MAX_KINDS)
		return fail(-E2BIG,
			    "undecided: the image's GPUs are linked in more than %d different ways; set "
			    "KFD_TOPOLOGY_CHECK=0 and name pairs by KFD_DEVICE_MAP",
			    PROBLEM_MAX_KINDS);
	kinds[p->nr_kinds] = *kind;
	return (int)p->nr_kinds++;
}

static int collect_kinds(const struct match *m, struct problem *p, struct pair_kind *kinds)
{
	for (unsigned int i = 0; i < p->nr_things; i++) {
		for (unsigned int j = 0; j < p->nr_things; j++) {
			struct pair_kind kind = { .out = rule_link_demand(m, i, j),
						  .in = rule_link_demand(m, j, i),
						  .numa = rule_numa_demand(m, i, j) };
			int index = kind_index(p, kinds, &kind);

			if (index < 0)
				return index;
			p->kind[i][j] = (uint8_t)index;
		}
	}
	return 0;
}

static bool has_link(const struct match *m, unsigned int from, unsigned int to, const struct link_demand *demand)
{
	const struct topology_node *node = local_gpu(m, from);

	if (demand->rank == LINK_NONE)
		return true;
	for (unsigned int l = 0; l < node->nr_links; l++)
		if (node->links[l].to == m->local_node[to] && link_serves(&node->links[l], demand))
			return true;
	return false;
}

static bool kind_allows(const struct match *m, const struct pair_kind *kind, unsigned int from, unsigned int to)
{
	return from != to && (!kind->numa || rule_numa_serves(m, from, to)) && has_link(m, from, to, &kind->out) &&
	       has_link(m, to, from, &kind->in);
}

/* A kind that rules nothing out is none: "on one NUMA node" is none on a machine with one. */
static void fill_kinds(const struct match *m, const struct pair_kind *kinds, struct problem *p)
{
	bool restricts[PROBLEM_MAX_KINDS] = { false };

	for (unsigned int k = 1; k < p->nr_kinds; k++)
		for (unsigned int v = 0; v < p->nr_places; v++)
			for (unsigned int u = 0; u < p->nr_places; u++) {
				if (kind_allows(m, &kinds[k], v, u))
					set_add(&p->row[k][v], u);
				else
					restricts[k] |= u != v;
			}
	for (unsigned int i = 0; i < p->nr_things; i++)
		for (unsigned int j = 0; j < p->nr_things; j++)
			p->kind[i][j] = restricts[p->kind[i][j]] ? p->kind[i][j] : 0;
}

static bool is_busy(const struct match *m, unsigned int place)
{
	return m->options->usage && !m->options->keeps_ids && m->options->usage[m->local_node[place]].has_queues;
}

static bool works_on(const struct match *m, unsigned int thing, enum match_work work)
{
	const struct gpu_work *done = m->options->work ? &m->options->work[m->saved_node[thing]] : NULL;

	return !done || done->has_queues || (work == WORK_ANY && done->vram_needed);
}

/* The first wish is the most important one. */
static bool fulfils(const struct match *m, unsigned int thing, unsigned int place, unsigned int wish)
{
	const struct topology_node *saved = saved_gpu(m, thing), *local = local_gpu(m, place);
	const bool wishes[PROBLEM_WISHES] = {
		!is_busy(m, place) || !works_on(m, thing, WORK_ANY),
		topology_gpu_id(saved) == topology_gpu_id(local),
		same_value(saved, local, TOPOLOGY_DOMAIN) && same_value(saved, local, TOPOLOGY_LOCATION_ID),
		same_value(saved, local, TOPOLOGY_NUMA_NODE),
	};

	return wishes[wish];
}

void rule_domains(const struct match *m, struct problem *p)
{
	for (unsigned int i = 0; i < p->nr_things; i++)
		for (unsigned int v = 0; v < p->nr_places; v++) {
			if (rule_gpu(m, i, v).kind == OBSTACLE_NONE)
				set_add(&p->domain[i], v);
			for (unsigned int wish = 0; wish < PROBLEM_WISHES; wish++)
				if (fulfils(m, i, v, wish))
					set_add(&p->wish[wish][i], v);
		}
}

/* A thing that fits on busy places alone keeps them. */
static bool has_idle(const struct match *m, const struct problem *p, unsigned int thing)
{
	for_each_place (v, &p->domain[thing])
		if (!is_busy(m, (unsigned int)v))
			return true;
	return false;
}

bool rule_leave_busy(const struct match *m, enum match_work work, struct problem *p)
{
	bool left = false;

	for (unsigned int i = 0; i < p->nr_things; i++) {
		if (!works_on(m, i, work) || !has_idle(m, p, i))
			continue;
		for_each_place (v, &p->domain[i]) {
			if (!is_busy(m, (unsigned int)v))
				continue;
			set_remove(&p->domain[i], (unsigned int)v);
			left = true;
		}
	}
	return left;
}

int rule_problem(const struct match *m, struct problem *p)
{
	struct pair_kind kinds[PROBLEM_MAX_KINDS];
	int err;

	p->nr_things = m->nr_things;
	p->nr_places = m->nr_places;
	p->nr_kinds = 1;
	err = collect_kinds(m, p, kinds);
	if (err)
		return err;
	fill_kinds(m, kinds, p);
	return 0;
}
