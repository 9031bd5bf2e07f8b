// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: says why there is no map, in one text: the first reason that is found. An obstacle names what was wanted, what
 * is there on which local GPUs, and the setting that accepts it if there is one.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "match/internal.h"

#define MIB ((uint64_t)1 << 20)

struct text {
	char bytes[FAIL_TEXT_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->bytes) - text->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->bytes + text->len, room, fmt, args);
	va_end(args);
	text->len += (size_t)n < room ? (size_t)n : room - 1;
	if ((size_t)n >= room)
		strcpy(text->bytes + sizeof(text->bytes) - sizeof("..."), "...");
}

static void add_gpu(struct text *text, const struct topology_node *node)
{
	add(text, " %#x", topology_gpu_id(node));
}

/* ---- GPUs that fit nowhere, or too few ---- */

static const char *rank_name(enum link_rank rank)
{
	return rank == LINK_XGMI ? "XGMI" : rank == LINK_PCIE ? "PCIe" : "no link";
}

/* What is in the way, without the local GPU's own value. */
static void add_obstacle(const struct match *m, unsigned int saved, const struct obstacle *o, struct text *text)
{
	char wanted[TOPOLOGY_VALUE_TEXT_MAX];
	const char *capability;

	if (o->kind == OBSTACLE_PROP) {
		topology_value_text(o->prop, o->wanted, wanted, sizeof(wanted));
		capability = o->prop == TOPOLOGY_CAPABILITY ? rule_capability_difference(o->wanted, o->found) : NULL;
		add(text, "%s, wanted %s%s%s%s", topology_prop_info(o->prop)->name,
		    rule_is_at_least(o->prop) ? "at least " : "", wanted, capability ? ", differs in " : "",
		    capability ? capability : "");
	} else if (o->kind == OBSTACLE_ROOM) {
		add(text, "free VRAM, wanted at least %" PRIu64 " MiB", (o->wanted + MIB - 1) / MIB);
	} else if (o->kind == OBSTACLE_HOST_LINK) {
		add(text, "link %s the host, wanted %s", o->from_host ? "from" : "to",
		    rank_name((enum link_rank)o->wanted));
	} else {
		add(text, "%s %#x, not",
		    m->follows[saved] ? "another process of the restore has chosen" : "KFD_DEVICE_MAP chooses",
		    topology_gpu_id(local_gpu(m, (unsigned int)m->pinned[saved])));
	}
	if (o->check != MATCH_CHECK_ALWAYS)
		add(text, " (%s=0 accepts it)", match_check_name(o->check));
}

/* The value that a local GPU has where another was wanted. */
static void add_found(const struct obstacle *o, struct text *text)
{
	char value[TOPOLOGY_VALUE_TEXT_MAX];

	if (o->kind == OBSTACLE_PROP) {
		topology_value_text(o->prop, o->found, value, sizeof(value));
		add(text, " (%s)", value);
	} else if (o->kind == OBSTACLE_ROOM) {
		add(text, " (%" PRIu64 " MiB)", o->found / MIB);
	} else if (o->kind == OBSTACLE_HOST_LINK) {
		add(text, " (%s)", o->found >= o->wanted ? "no atomics" : rank_name((enum link_rank)o->found));
	}
}

/* Whether one clause can tell of both, whatever the local values. */
static bool similar(const struct obstacle *a, const struct obstacle *b)
{
	return a->kind == b->kind && a->prop == b->prop && a->from_host == b->from_host && a->wanted == b->wanted &&
	       (a->prop != TOPOLOGY_CAPABILITY ||
		rule_capability_difference(a->wanted, a->found) == rule_capability_difference(b->wanted, b->found));
}

/* What a saved GPU meets first on each local one: a clause for each obstacle, with the GPUs that have it. */
static void explain_obstacles(const struct match *m, unsigned int saved, struct text *text)
{
	bool told[GPUS_MAX] = { false };
	const char *before = "";

	add(text, "; saved %#x: ", topology_gpu_id(saved_gpu(m, saved)));
	for (unsigned int v = 0; v < m->nr_local; v++) {
		struct obstacle o = rule_gpu(m, saved, v), last = o;

		if (told[v] || o.kind == OBSTACLE_NONE)
			continue;
		add(text, "%s", before);
		before = "; ";
		add_obstacle(m, saved, &o, text);
		add(text, ": local");
		for (unsigned int u = v; u < m->nr_local; u++) {
			struct obstacle other = rule_gpu(m, saved, u);

			if (!similar(&o, &other))
				continue;
			told[u] = true;
			if (other.found != last.found)
				add_found(&last, text);
			add_gpu(text, local_gpu(m, u));
			last = other;
		}
		add_found(&last, text);
	}
}

/* Several saved GPUs fit only on fewer local ones. */
static void explain_crowd(const struct match *m, const struct crowd *crowd, struct text *text)
{
	unsigned int nr_saved = 0, nr_local = 0, first = m->nr_saved;

	for (unsigned int i = m->nr_saved; i-- > 0;)
		if (crowd->saved[i]) {
			nr_saved++;
			first = i;
		}
	for (unsigned int v = 0; v < m->nr_local; v++)
		nr_local += crowd->local[v];
	add(text, "%u saved GPUs fit only %u local GPUs: saved", nr_saved, nr_local);
	for (unsigned int i = 0; i < m->nr_saved; i++)
		if (crowd->saved[i])
			add_gpu(text, saved_gpu(m, i));
	add(text, "; local");
	for (unsigned int v = 0; v < m->nr_local; v++)
		if (crowd->local[v])
			add_gpu(text, local_gpu(m, v));
	if (nr_local < m->nr_local)
		explain_obstacles(m, first, text);
}

/* ---- links and NUMA nodes ---- */

/* Could the two be placed if there were no others? */
static bool pair_fits(const struct match *m, unsigned int a, unsigned int b)
{
	for (unsigned int x = 0; x < m->nr_local; x++)
		for (unsigned int y = 0; y < m->nr_local; y++)
			if (m->worth[a][x] && m->worth[b][y] && rule_pair(m, a, b, x, y))
				return true;
	return false;
}

/* Whether a pair fits nowhere, wherever the others go. */
static bool explain_pairs(const struct match *m, struct text *text)
{
	for (unsigned int a = 0; a < m->nr_saved; a++) {
		for (unsigned int b = a + 1; b < m->nr_saved; b++) {
			struct link_demand link = m->demands[m->wants[a][b]];

			if (pair_fits(m, a, b))
				continue;
			if (link.rank == LINK_NONE)
				link = m->demands[m->wants[b][a]];
			add(text, "no two local GPUs that fit are as saved %#x and %#x were:",
			    topology_gpu_id(saved_gpu(m, a)), topology_gpu_id(saved_gpu(m, b)));
			if (link.rank != LINK_NONE)
				add(text, " linked by %s", rank_name(link.rank));
			if (link.max_bandwidth)
				add(text, " of %u MB/s", link.max_bandwidth);
			if (link.has_flags && ~link.flags & NO_ATOMICS)
				add(text, " with atomics");
			if (link.numa)
				add(text, "%s on one NUMA node", link.rank == LINK_NONE ? "" : ",");
			return true;
		}
	}
	return false;
}

static void explain_links(const struct match *m, struct text *text)
{
	bool shares_room = false;

	for (unsigned int v = 1; v < m->nr_local; v++)
		for (unsigned int u = 0; u < v; u++)
			shares_room |= rule_share_room(m, v, u);
	if (!explain_pairs(m, text))
		add(text, "no choice of local GPUs keeps all links and NUMA nodes of the saved ones%s",
		    shares_room ? ", and has room for those that become partitions of one device" : "");
	if (shares_room)
		add(text, "; KFD_VRAM_SIZE_CHECK=0 does not look at free VRAM");
	if (!m->options->relaxed[MATCH_CHECK_NUMA])
		add(text, "; KFD_NUMA_CHECK=0 does not look at NUMA nodes");
}

/* ---- all of it ---- */

int report_refusal(const struct match *m, const struct crowd *crowd)
{
	unsigned int nr_unusable = topology_count_gpus(m->local) - m->nr_local, nr_unfit = 0, first = 0;
	const char *const *unusable = m->options->unusable;
	bool told[TOPOLOGY_MAX_NODES] = { false };
	struct text text = { .len = 0 };

	add(&text, "cannot place %u saved GPU%s on %u local one%s", m->nr_saved, m->nr_saved == 1 ? "" : "s", m->nr_local,
	    m->nr_local == 1 ? "" : "s");
	if (nr_unusable)
		add(&text, ", %u more may not be used by the process", nr_unusable);
	if (m->local->nr_hidden)
		add(&text, ", %u more are hidden", m->local->nr_hidden);
	add(&text, ": ");
	for (unsigned int i = m->nr_saved; i-- > 0;) {
		bool fits = false;

		for (unsigned int v = 0; v < m->nr_local && !fits; v++)
			fits = m->worth[i][v];
		nr_unfit += !fits;
		first = fits ? first : i;
	}
	if (nr_unfit) {
		add(&text, "%u of %u saved GPUs fit no local GPU", nr_unfit, m->nr_saved);
		if (m->nr_local)
			explain_obstacles(m, first, &text);
	} else if (crowd->is_there) {
		explain_crowd(m, crowd, &text);
	} else {
		explain_links(m, &text);
	}
	/* Those that may not be used: a clause for each reason. */
	for (unsigned int i = 0; unusable && i < m->local->nr_nodes; i++) {
		if (told[i] || !topology_is_gpu(m->local->nodes[i]) || !unusable[i])
			continue;
		add(&text, "; not used:");
		for (unsigned int j = i; j < m->local->nr_nodes; j++) {
			if (!topology_is_gpu(m->local->nodes[j]) || !unusable[j] || strcmp(unusable[i], unusable[j]))
				continue;
			told[j] = true;
			add_gpu(&text, m->local->nodes[j]);
		}
		add(&text, ": %s", unusable[i]);
	}
	return fail(-ENODEV, "%s", text.bytes);
}
