// SPDX-License-Identifier: GPL-2.0-only
/* Match: the rules. Each is one function over topologies and options, for the search and for the report. */
#include "match/internal.h"

static const char *const check_names[MATCH_NR_CHECKS] = {
	[MATCH_CHECK_FW_VERSION] = "KFD_FW_VER_CHECK",
	[MATCH_CHECK_SDMA_FW_VERSION] = "KFD_SDMA_FW_VER_CHECK",
	[MATCH_CHECK_CACHES_COUNT] = "KFD_CACHES_COUNT_CHECK",
	[MATCH_CHECK_NUM_GWS] = "KFD_NUM_GWS_CHECK",
	[MATCH_CHECK_VRAM_SIZE] = "KFD_VRAM_SIZE_CHECK",
	[MATCH_CHECK_CAPABILITY] = "KFD_CAPABILITY_CHECK",
	[MATCH_CHECK_NUMA] = "KFD_NUMA_CHECK",
};

enum rule { RULE_NONE, RULE_EQUAL, RULE_AT_LEAST, RULE_CAPABILITY };

struct prop_rule {
	enum rule rule;
	enum match_check check;
};

#define EQUAL                                  \
	{                                      \
		RULE_EQUAL, MATCH_CHECK_ALWAYS \
	}
#define AT_LEAST(check_)                            \
	{                                           \
		RULE_AT_LEAST, MATCH_CHECK_##check_ \
	}

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
 * The bits of "capability" that the ROCm runtime and compiled code act on. The others serve debuggers (watch points,
 * trap debug, precise ALU), monitors (memory EDC, RAS) or the kernel itself (hot pluggable, shared with graphics, idle
 * event, per queue reset), and two kernels may compute them differently for one GPU.
 */
static const struct {
	uint32_t bits;
	const char *name;
} capability_bits[] = {
	{ 0x00000002, "ATS" },			 /* host memory is reached by host page tables */
	{ 0x00000008, "queue size power of 2" }, /* user space allocates the rings */
	{ 0x00000010, "queue size 32 bit" },
	{ 0x00000040, "VA limit" },		/* layout of the address space */
	{ 0x00003000, "doorbell type" },	/* width of what is written to a doorbell */
	{ 0x00004000, "AQL queue double map" }, /* ring layout */
	{ 0x03c00000, "ASIC revision" },	/* libraries choose kernels by it */
	{ 0x04000000, "SRAM EDC" },		/* part of the code object target (sramecc) */
	{ 0x08000000, "SVM" },			/* how the runtime manages memory */
	{ 0x10000000, "coherent host access" }, /* fine-grained memory */
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

static bool is_better(const struct link_demand *a, const struct link_demand *b)
{
	return a->rank != b->rank ? a->rank > b->rank : a->max_bandwidth > b->max_bandwidth;
}

/* The best of the links from a node to another one; @peer: for access to the other one's memory. */
static struct link_demand best_link(const struct topology_node *from, unsigned int to, bool peer)
{
	struct link_demand best = { .rank = LINK_NONE };

	for (unsigned int i = 0; i < from->nr_links; i++) {
		const struct topology_link *link = &from->links[i];
		struct link_demand demand = { .rank = link_rank(link), .has_flags = link->has_flags, .flags = link->flags };

		if (demand.rank == LINK_XGMI && link->has_bandwidth)
			demand.max_bandwidth = link->max_bandwidth;
		if (link->to == (int)to && (!peer || is_peer_link(link)) &&
		    is_better(&demand, &best))
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

/* ---- what is looked up often ---- */

static bool same_value(const struct topology_node *a, const struct topology_node *b, enum topology_prop prop)
{
	return topology_has(a, prop) && topology_has(b, prop) && topology_get(a, prop) == topology_get(b, prop);
}

/* The number of such a demand, which is added where it is new. */
static int number_of(struct match *m, const struct link_demand *demand)
{
	for (unsigned int d = 0; d < m->nr_demands; d++) {
		const struct link_demand *known = &m->demands[d];

		if (known->rank == demand->rank && known->max_bandwidth == demand->max_bandwidth && known->numa == demand->numa &&
		    known->has_flags == demand->has_flags && known->flags == demand->flags)
			return (int)d;
	}
	if (m->nr_demands == MAX_DEMANDS)
		return fail(-E2BIG,
			    "undecided: the image's GPUs are linked in more than %d different ways (KFD_NUMA_CHECK=0 "
			    "makes them fewer)",
			    MAX_DEMANDS);
	m->demands[m->nr_demands] = *demand;
	return (int)m->nr_demands++;
}

static int prepare_demands(struct match *m)
{
	m->nr_demands = 1;
	for (unsigned int a = 0; a < m->nr_saved; a++) {
		for (unsigned int b = 0; b < m->nr_saved; b++) {
			struct link_demand demand = { .rank = LINK_NONE };
			int number;

			if (a != b)
				demand = best_link(saved_gpu(m, a), m->saved_node[b], true);
			demand.numa = a != b && checked(m, MATCH_CHECK_NUMA) &&
				      same_value(saved_gpu(m, a), saved_gpu(m, b), TOPOLOGY_NUMA_NODE);
			number = number_of(m, &demand);
			if (number < 0)
				return number;
			m->wants[a][b] = (uint8_t)number;
		}
	}
	return 0;
}

static bool is_met(const struct match *m, const struct link_demand *demand, unsigned int x, unsigned int y)
{
	const struct topology_node *from = local_gpu(m, x), *to = local_gpu(m, y);

	if (x == y || (demand->numa && !same_value(from, to, TOPOLOGY_NUMA_NODE)))
		return false;
	for (unsigned int l = 0; demand->rank != LINK_NONE && l < from->nr_links; l++) {
		const struct topology_link *link = &from->links[l];

		if (link->to == m->local_node[y] && is_peer_link(link) && link_rank(link) >= demand->rank &&
		    flags_serve(link->has_flags, link->flags, demand) &&
		    (!demand->max_bandwidth || !link->has_bandwidth || link->max_bandwidth >= demand->max_bandwidth))
			return true;
	}
	return demand->rank == LINK_NONE;
}

static bool same_device(const struct match *m, unsigned int a, unsigned int b)
{
	return topology_same_device(local_gpu(m, a), local_gpu(m, b));
}

int rule_prepare(struct match *m)
{
	const struct gpu_work *work = checked(m, MATCH_CHECK_VRAM_SIZE) ? m->options->work : NULL;
	uint64_t most = 0;
	int err = prepare_demands(m);

	if (err)
		return err;
	for (int from_host = 0; from_host < 2; from_host++) {
		for (unsigned int i = 0; i < m->nr_saved; i++)
			m->saved_host[from_host][i] = host_link(m->saved, m->saved_node[i], from_host);
		for (unsigned int v = 0; v < m->nr_local; v++)
			m->local_host[from_host][v] = host_link(m->local, m->local_node[v], from_host);
	}
	/* Who follows another process finds that one's memory on the GPU. */
	for (unsigned int i = 0; i < m->nr_saved; i++) {
		m->needed[i] = work && !m->follows[i] ? work[m->saved_node[i]].vram_needed : 0;
		most = m->needed[i] > most ? m->needed[i] : most;
	}
	for (unsigned int v = 0; v < m->nr_local; v++) {
		const struct gpu_usage *usage = m->options->usage ? &m->options->usage[m->local_node[v]] : NULL;
		unsigned int nr_parts = 0;

		for (unsigned int u = 0; u < m->nr_local; u++)
			nr_parts += same_device(m, u, v);
		m->room[v] = usage && usage->vram_known && most > usage->vram_free / nr_parts ? usage->vram_free
											      : UINT64_MAX;
	}
	m->serves = calloc((size_t)m->nr_local * m->nr_local + 1, sizeof(*m->serves));
	for (unsigned int x = 0; m->serves && x < m->nr_local; x++)
		for (unsigned int y = 0; y < m->nr_local; y++)
			for (unsigned int d = 0; d < m->nr_demands; d++)
				m->serves[x * m->nr_local + y] |= (uint64_t)is_met(m, &m->demands[d], x, y) << d;
	return m->serves ? 0 : -ENOMEM;
}

/* ---- one GPU ---- */

struct obstacle rule_gpu(const struct match *m, unsigned int saved, unsigned int local)
{
	const struct topology_node *from = saved_gpu(m, saved), *to = local_gpu(m, local);

	if (m->pinned[saved] >= 0 && m->pinned[saved] != (int)local)
		return (struct obstacle){ .kind = OBSTACLE_PINNED, .check = MATCH_CHECK_ALWAYS };
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		uint64_t wanted = topology_get(from, i), found = topology_get(to, i);
		const struct prop_rule *rule = &prop_rules[i];

		if (topology_has(from, i) && topology_has(to, i) && checked(m, rule->check) &&
		    !prop_fits(rule->rule, wanted, found))
			return (struct obstacle){
				.kind = OBSTACLE_PROP, .prop = i, .wanted = wanted, .found = found, .check = rule->check
			};
	}
	if (m->needed[saved] > m->room[local])
		return (struct obstacle){
			.kind = OBSTACLE_ROOM, .wanted = m->needed[saved], .found = m->room[local], .check = MATCH_CHECK_VRAM_SIZE
		};
	for (int from_host = 0; from_host < 2; from_host++) {
		struct link_demand wanted = m->saved_host[from_host][saved];
		struct link_demand found = m->local_host[from_host][local];

		if (found.rank < wanted.rank ||
		    (wanted.rank != LINK_NONE && !flags_serve(found.has_flags, found.flags, &wanted)))
			return (struct obstacle){
				.kind = OBSTACLE_HOST_LINK, .wanted = wanted.rank, .found = found.rank, .from_host = from_host,
				.check = MATCH_CHECK_ALWAYS,
			};
	}
	return (struct obstacle){ .kind = OBSTACLE_NONE };
}

/* ---- two GPUs ---- */

bool rule_share_room(const struct match *m, unsigned int a, unsigned int b)
{
	return m->room[a] != UINT64_MAX && same_device(m, a, b);
}

bool rule_same_pair(const struct match *m, unsigned int a, unsigned int b, unsigned int c, unsigned int d)
{
	return rule_serves(m, a, b) == rule_serves(m, c, d) && rule_serves(m, b, a) == rule_serves(m, d, c) &&
	       rule_share_room(m, a, b) == rule_share_room(m, c, d);
}

/* ---- which one to take ---- */

static bool is_busy(const struct match *m, unsigned int local)
{
	return m->options->usage && !m->options->keeps_ids && m->options->usage[m->local_node[local]].has_queues;
}

static bool wants_idle(const struct match *m, unsigned int saved, enum idle idle)
{
	const struct gpu_work *work = m->options->work ? &m->options->work[m->saved_node[saved]] : NULL;

	return idle != IDLE_NONE && (!work || work->has_queues || (idle == IDLE_WORK && work->vram_needed));
}

#define WORTH_IDLE 8

static uint8_t worth(const struct match *m, unsigned int i, unsigned int v)
{
	const struct topology_node *saved = saved_gpu(m, i), *local = local_gpu(m, v);
	bool is_good = !is_busy(m, v) || !wants_idle(m, i, IDLE_WORK);

	if (rule_gpu(m, i, v).kind != OBSTACLE_NONE)
		return 0;
	return (uint8_t)(1 + WORTH_IDLE * is_good + 4 * (topology_gpu_id(saved) == topology_gpu_id(local)) +
			 2 * (same_value(saved, local, TOPOLOGY_DOMAIN) &&
			      same_value(saved, local, TOPOLOGY_LOCATION_ID)) +
			 same_value(saved, local, TOPOLOGY_NUMA_NODE));
}

bool rule_worth(struct match *m, enum idle idle)
{
	bool differs = false;

	for (unsigned int i = 0; i < m->nr_saved; i++) {
		bool leaves_busy = false;
		uint8_t now[GPUS_MAX];

		for (unsigned int v = 0; v < m->nr_local; v++) {
			now[v] = worth(m, i, v);
			leaves_busy |= now[v] && !is_busy(m, v) && wants_idle(m, i, idle);
		}
		for (unsigned int v = 0; v < m->nr_local; v++)
			now[v] = leaves_busy && is_busy(m, v) ? 0 : now[v];
		differs |= memcmp(m->worth[i], now, m->nr_local) != 0;
		memcpy(m->worth[i], now, m->nr_local);
	}
	return differs;
}
