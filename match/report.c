// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: says in a few lines why there is no map.
 *
 * GPUs with the same story share a line. Every obstacle names what was wanted,
 * what is there, and the setting that accepts it if there is one.
 */
#include <stdarg.h>

#include "match/internal.h"
#include "amdgpu_plugin_util.h"

/* How many pairs or places are shown where there are many. */
#define SHOWN 4

/* ---- lines ---- */

static void append(struct match_report *report, const char *fmt, va_list args)
{
	char *line = report->line[report->nr_lines - 1];
	size_t len = strlen(line);

	if (vsnprintf(line + len, MATCH_REPORT_COLUMNS - len, fmt, args) >= (int)(MATCH_REPORT_COLUMNS - len))
		strcpy(line + MATCH_REPORT_COLUMNS - 4, "...");
}

void report_line(struct match_report *report, const char *fmt, ...)
{
	va_list args;

	if (report->nr_lines == MATCH_REPORT_LINES) {
		strcpy(report->line[MATCH_REPORT_LINES - 1], "... (more than fits here)");
		report->cut = true;
		return;
	}
	report->line[report->nr_lines++][0] = '\0';
	va_start(args, fmt);
	append(report, fmt, args);
	va_end(args);
}

/* Adds to the last line. */
__attribute__((format(printf, 2, 3))) static void report_add(struct match_report *report, const char *fmt, ...)
{
	va_list args;

	if (report->cut)
		return;
	va_start(args, fmt);
	append(report, fmt, args);
	va_end(args);
}

static void add_gpu(struct match_report *report, const struct topology_node *node)
{
	report_add(report, " %#x", topology_gpu_id(node));
}

void match_report_log(const struct match_report *report)
{
	for (unsigned int i = 0; i < report->nr_lines; i++)
		pr_err("%s", report->line[i]);
}

/* ---- GPUs that fit nowhere, or too few ---- */

static const char *rank_name(enum link_rank rank)
{
	return rank == LINK_XGMI ? "XGMI" : rank == LINK_PCIE ? "PCIe" : "no link";
}

/* What is in the way, without the local GPU's own value. */
static void add_obstacle(const struct match *m, unsigned int thing, const struct obstacle *o,
			 struct match_report *report)
{
	char wanted[TOPOLOGY_VALUE_TEXT_MAX];
	const char *capability;

	switch (o->kind) {
	case OBSTACLE_PROP:
		topology_value_text(o->prop, o->wanted, wanted, sizeof(wanted));
		capability = o->prop == TOPOLOGY_CAPABILITY ? rule_capability_difference(o->wanted, o->found) : NULL;
		report_add(report, "%s, wanted %s%s%s%s", topology_prop_info(o->prop)->name,
			   rule_is_at_least(o->prop) ? "at least " : "", wanted, capability ? ", differs in " : "",
			   capability ? capability : "");
		break;
	case OBSTACLE_HOST_LINK:
		report_add(report, "link %s the host, wanted %s", o->from_host ? "from" : "to",
			   rank_name((enum link_rank)o->wanted));
		break;
	case OBSTACLE_PINNED:
		report_add(report, "%s %#x, not",
			   m->follows[thing] ? "another process of the restore has chosen" : "KFD_DEVICE_MAP chooses",
			   topology_gpu_id(local_gpu(m, (unsigned int)m->pinned[thing])));
		break;
	default:
		report_add(report, "no obstacle");
	}
	if (o->kind != OBSTACLE_NONE && o->check != MATCH_CHECK_ALWAYS)
		report_add(report, " (%s=0 accepts it)", match_check_name(o->check));
}

/* The value that a local GPU has where another was wanted. */
static void add_found(const struct obstacle *o, struct match_report *report)
{
	char value[TOPOLOGY_VALUE_TEXT_MAX];

	if (o->kind == OBSTACLE_PROP) {
		topology_value_text(o->prop, o->found, value, sizeof(value));
		report_add(report, " (%s)", value);
	} else if (o->kind == OBSTACLE_HOST_LINK) {
		report_add(report, " (%s)", o->found >= o->wanted ? "no atomics" : rank_name((enum link_rank)o->found));
	}
}

/* Can one line tell of both, whatever the local values? */
static bool similar(const struct obstacle *a, const struct obstacle *b)
{
	return a->kind == b->kind && a->prop == b->prop && a->from_host == b->from_host && a->wanted == b->wanted &&
	       (a->prop != TOPOLOGY_CAPABILITY ||
		rule_capability_difference(a->wanted, a->found) == rule_capability_difference(b->wanted, b->found));
}

/* What add_wanted() tells of a saved GPU. */
static const enum topology_prop wanted_props[] = { TOPOLOGY_VENDOR_ID, TOPOLOGY_DEVICE_ID, TOPOLOGY_GFX_TARGET_VERSION,
						   TOPOLOGY_VRAM_SIZE, TOPOLOGY_FW_VERSION };

/* Did the two saved GPUs want the same, and do they meet the same obstacle on every local one? */
static bool same_story(const struct match *m, unsigned int a, unsigned int b)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted_props); i++) {
		if (topology_get(saved_gpu(m, a), wanted_props[i]) != topology_get(saved_gpu(m, b), wanted_props[i]))
			return false;
	}
	for (unsigned int v = 0; v < m->nr_places; v++) {
		struct obstacle x = rule_gpu(m, a, v), y = rule_gpu(m, b, v);

		if (!similar(&x, &y))
			return false;
	}
	return true;
}

static void add_wanted(const struct topology_node *node, struct match_report *report)
{
	unsigned int gfx = (unsigned int)topology_get(node, TOPOLOGY_GFX_TARGET_VERSION);
	char vram[TOPOLOGY_VALUE_TEXT_MAX];

	topology_value_text(TOPOLOGY_VRAM_SIZE, topology_get(node, TOPOLOGY_VRAM_SIZE), vram, sizeof(vram));
	report_add(report, " wanted: device %04x:%04x", (unsigned int)topology_get(node, TOPOLOGY_VENDOR_ID),
		   (unsigned int)topology_get(node, TOPOLOGY_DEVICE_ID));
	if (topology_has(node, TOPOLOGY_GFX_TARGET_VERSION))
		report_add(report, ", gfx%u%x%x", gfx / 10000, gfx / 100 % 100, gfx % 100);
	report_add(report, ", %s VRAM, firmware %u", vram, (unsigned int)topology_get(node, TOPOLOGY_FW_VERSION));
}

/* What a saved GPU meets first on each local one: a line for each obstacle, with the GPUs that have it. */
static void explain_obstacles(const struct match *m, unsigned int thing, struct match_report *report)
{
	bool told[PROBLEM_MAX] = { false };

	for (unsigned int v = 0; v < m->nr_places; v++) {
		struct obstacle o = rule_gpu(m, thing, v), last = o;

		if (told[v])
			continue;
		report_line(report, "    ");
		add_obstacle(m, thing, &o, report);
		report_add(report, ": local");
		for (unsigned int u = v; u < m->nr_places; u++) {
			struct obstacle other = rule_gpu(m, thing, u);

			if (!similar(&o, &other))
				continue;
			told[u] = true;
			if (other.found != last.found)
				add_found(&last, report);
			add_gpu(report, local_gpu(m, u));
			last = other;
		}
		add_found(&last, report);
	}
}

/* What these saved GPUs wanted and what is in the way, those with the same story together. */
static void explain_things(const struct match *m, const bool *concerned, struct match_report *report)
{
	bool told[PROBLEM_MAX] = { false };

	for (unsigned int i = 0; i < m->nr_things; i++) {
		if (!concerned[i] || told[i])
			continue;
		report_line(report, "  saved");
		for (unsigned int j = i; j < m->nr_things; j++) {
			if (!concerned[j] || told[j] || !same_story(m, i, j))
				continue;
			told[j] = true;
			add_gpu(report, saved_gpu(m, j));
		}
		add_wanted(saved_gpu(m, i), report);
		explain_obstacles(m, i, report);
	}
}

/* Some saved GPU has no place at all. */
static bool explain_unfit(const struct match *m, const struct problem *p, struct match_report *report)
{
	bool unfit[PROBLEM_MAX] = { false };
	unsigned int count = 0;

	for (unsigned int i = 0; i < m->nr_things; i++) {
		unfit[i] = !set_count(problem_domain(p, i), p->nr_words);
		count += unfit[i];
	}
	if (!count || !m->nr_places)
		return false;
	report_line(report, "%u of %u saved GPUs fit no local GPU:", count, m->nr_things);
	explain_things(m, unfit, report);
	return true;
}

static unsigned int count_true(const bool *flags, unsigned int nr)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < nr; i++)
		count += flags[i];
	return count;
}

/* Several saved GPUs fit only on fewer local ones. */
static void explain_crowd(const struct match *m, const struct assignment *attempt, struct match_report *report)
{
	unsigned int nr_saved = count_true(attempt->in_crowd, m->nr_things);
	unsigned int nr_local = count_true(attempt->crowd_room, m->nr_places);

	report_line(report, "%u saved GPUs fit only %u local GPUs:", nr_saved, nr_local);
	report_line(report, "  saved");
	for (unsigned int i = 0; i < m->nr_things; i++) {
		if (attempt->in_crowd[i])
			add_gpu(report, saved_gpu(m, i));
	}
	report_add(report, "; local%s", nr_local ? "" : " none");
	for (unsigned int v = 0; v < m->nr_places; v++) {
		if (attempt->crowd_room[v])
			add_gpu(report, local_gpu(m, v));
	}
	if (nr_local < m->nr_places)
		explain_things(m, attempt->in_crowd, report);
}

/* ---- links and NUMA nodes ---- */

static void demand_text(const struct link_demand *demand, char *text, size_t size)
{
	if (demand->max_bandwidth)
		snprintf(text, size, "%s of %u MB/s", rank_name(demand->rank), demand->max_bandwidth);
	else
		snprintf(text, size, "%s", rank_name(demand->rank));
}

/* What a pair of saved GPUs cannot have on a pair of places. */
struct conflict {
	enum { CONFLICT_NONE, CONFLICT_LINK, CONFLICT_NUMA } kind;
	bool backward; /* the link from the second to the first */
	struct link_demand wanted;
	struct link_demand found;
};

static struct conflict find_conflict(const struct match *m, unsigned int a, unsigned int b, unsigned int on_a,
				     unsigned int on_b)
{
	for (int backward = 0; backward < 2; backward++) {
		struct link_demand wanted = backward ? rule_link_demand(m, b, a) : rule_link_demand(m, a, b);
		unsigned int from = backward ? on_b : on_a, to = backward ? on_a : on_b;

		if (!rule_link_serves(m, from, to, &wanted))
			return (struct conflict){ CONFLICT_LINK, backward, wanted, rule_local_link(m, from, to) };
	}
	if (rule_numa_demand(m, a, b) && !rule_numa_serves(m, on_a, on_b))
		return (struct conflict){ .kind = CONFLICT_NUMA };
	return (struct conflict){ .kind = CONFLICT_NONE };
}

/* Could the pair be placed if there were only these two? */
static bool pair_fits(const struct problem *p, unsigned int a, unsigned int b)
{
	unsigned int kind = *problem_kind(p, a, b);

	if (!kind)
		return true;
	for_each_place (v, problem_domain(p, a), p->nr_words) {
		const uint64_t *row = problem_row(p, kind, (unsigned int)v), *domain = problem_domain(p, b);

		for (unsigned int w = 0; w < p->nr_words; w++) {
			if (row[w] & domain[w])
				return true;
		}
	}
	return false;
}

/* Of all places for the pair, what the best ones lack. */
static struct conflict least_conflict(const struct match *m, const struct problem *p, unsigned int a, unsigned int b)
{
	struct conflict best = { .kind = CONFLICT_NONE };

	for_each_place (v, problem_domain(p, a), p->nr_words) {
		for_each_place (u, problem_domain(p, b), p->nr_words) {
			struct conflict conflict;

			if (u == v)
				continue;
			conflict = find_conflict(m, a, b, (unsigned int)v, (unsigned int)u);
			if (best.kind == CONFLICT_NONE || conflict.found.rank > best.found.rank ||
			    (conflict.found.rank == best.found.rank &&
			     conflict.found.max_bandwidth > best.found.max_bandwidth))
				best = conflict;
		}
	}
	return best;
}

static void explain_pair(const struct match *m, unsigned int a, unsigned int b, const struct conflict *conflict,
			 struct match_report *report)
{
	uint32_t x = topology_gpu_id(saved_gpu(m, conflict->backward ? b : a));
	uint32_t y = topology_gpu_id(saved_gpu(m, conflict->backward ? a : b));
	char wanted[48], found[48];

	if (conflict->kind == CONFLICT_NUMA) {
		report_line(report, "  saved %#x and %#x were on one NUMA node; no two local GPUs that fit are", x, y);
		return;
	}
	demand_text(&conflict->wanted, wanted, sizeof(wanted));
	demand_text(&conflict->found, found, sizeof(found));
	report_line(report, "  saved %#x -> %#x was linked by %s; best between local GPUs that fit: %s%s", x, y, wanted,
		    found,
		    conflict->found.rank >= conflict->wanted.rank &&
				    conflict->found.max_bandwidth >= conflict->wanted.max_bandwidth
			    ? ", but without atomics"
			    : "");
}

/* Pairs that fit nowhere, wherever the others go. */
static bool explain_pairs(const struct match *m, const struct problem *p, struct match_report *report)
{
	unsigned int count = 0;

	for (unsigned int a = 0; a < m->nr_things; a++) {
		for (unsigned int b = a + 1; b < m->nr_things; b++) {
			struct conflict conflict;

			if (pair_fits(p, a, b))
				continue;
			if (!count)
				report_line(report, "pairs of saved GPUs cannot be linked here as they were:");
			if (count++ >= SHOWN)
				continue;
			conflict = least_conflict(m, p, a, b);
			explain_pair(m, a, b, &conflict, report);
		}
	}
	if (count > SHOWN)
		report_line(report, "  and %u more pairs", count - SHOWN);
	return count > 0;
}

/* Are two saved GPUs, or two local ones, linked or on one NUMA node? */
static bool bound(const struct match *m, bool saved, bool numa, unsigned int a, unsigned int b)
{
	if (numa)
		return saved ? rule_numa_demand(m, a, b) : rule_numa_serves(m, a, b);
	if (saved)
		return rule_link_demand(m, a, b).rank != LINK_NONE || rule_link_demand(m, b, a).rank != LINK_NONE;
	return rule_local_link(m, a, b).rank != LINK_NONE;
}

/* The groups of GPUs that belong together, e.g. "0x1 0x2 | 0x3". */
static void explain_groups(const struct match *m, bool saved, bool numa, struct match_report *report)
{
	unsigned int nr = saved ? m->nr_things : m->nr_places, queue[PROBLEM_MAX], tail;
	bool seen[PROBLEM_MAX] = { false };

	report_line(report, "  %s %s:", saved ? "saved" : "local", numa ? "by NUMA node" : "by links");
	for (unsigned int start = 0; start < nr; start++) {
		if (seen[start])
			continue;
		if (start)
			report_add(report, " |");
		seen[start] = true;
		queue[0] = start;
		tail = 1;
		for (unsigned int head = 0; head < tail; head++) {
			add_gpu(report, saved ? saved_gpu(m, queue[head]) : local_gpu(m, queue[head]));
			for (unsigned int i = 0; i < nr; i++) {
				if (seen[i] || !bound(m, saved, numa, queue[head], i))
					continue;
				seen[i] = true;
				queue[tail++] = i;
			}
		}
	}
}

static void explain_links(const struct match *m, const struct problem *p, struct match_report *report)
{
	bool links = !m->options->relaxed[MATCH_CHECK_TOPOLOGY], numa = !m->options->relaxed[MATCH_CHECK_NUMA];

	if (!explain_pairs(m, p, report))
		report_line(report, "no choice of local GPUs keeps all links and NUMA nodes of the saved ones:");
	for (int saved = 1; links && saved >= 0; saved--)
		explain_groups(m, saved, false, report);
	for (int saved = 1; numa && saved >= 0; saved--)
		explain_groups(m, saved, true, report);
	if (links)
		report_line(report, "KFD_TOPOLOGY_CHECK=0 does not look at links");
	if (numa)
		report_line(report, "KFD_NUMA_CHECK=0 does not look at NUMA nodes");
}

/* ---- all of it ---- */

static bool is_unusable(const struct match *m, unsigned int node)
{
	return topology_is_gpu(m->local->nodes[node]) && m->options->unusable && m->options->unusable[node];
}

/* The local GPUs that may not be used: a line for each reason. */
static void explain_unusable(const struct match *m, struct match_report *report)
{
	bool told[TOPOLOGY_MAX_NODES] = { false };

	for (unsigned int i = 0; i < m->local->nr_nodes; i++) {
		if (told[i] || !is_unusable(m, i))
			continue;
		report_line(report, "  not used:");
		for (unsigned int j = i; j < m->local->nr_nodes; j++) {
			if (!is_unusable(m, j) || strcmp(m->options->unusable[i], m->options->unusable[j]))
				continue;
			told[j] = true;
			add_gpu(report, m->local->nodes[j]);
		}
		report_add(report, ": %s", m->options->unusable[i]);
	}
}

void report_refusal(const struct match *m, const struct problem *problem, const struct assignment *attempt,
		    struct match_report *report)
{
	report_line(report,
		    "no map of %u saved GPUs to %u local ones (%u more may not be used by the process, %u are hidden)",
		    m->nr_things, m->nr_places, topology_count_gpus(m->local) - m->nr_places, m->local->nr_hidden);
	explain_unusable(m, report);
	if (explain_unfit(m, problem, report))
		return;
	if (attempt->crowded)
		explain_crowd(m, attempt, report);
	else
		explain_links(m, problem, report);
}
