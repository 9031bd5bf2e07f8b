// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: says in a few lines why there is no map.
 *
 * GPUs of which the same is to be said share a line, so that a machine of eight
 * GPUs fits on a screen. Every obstacle names what was wanted, what is there,
 * and the setting that relaxes it where there is one.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "match/internal.h"
#include "amdgpu_plugin_util.h"

/* Pairs, or places, that are shown of many. */
#define SHOWN 4

/* Whether a setting would help is worth less than whether there is a map. */
#define RELAXED_WORK_LIMIT (5 * 1000 * 1000)

/* A line in the making: cut into lines of this width when it is done. */
#define WRAP_COLUMNS  118
#define DENSE_COLUMNS 150

struct text {
	size_t len;
	char at[8192];
};

static void text_empty(struct text *text)
{
	text->len = 0;
	text->at[0] = '\0';
}

static bool report_full(const struct match_report *report)
{
	return report->n_lines == MATCH_REPORT_LINES;
}

void match_report_log(const struct match_report *report)
{
	for (unsigned int i = 0; i < report->n_lines; i++)
		pr_err("%s", report->line[i]);
}

/* What is too long for the text is too long for the report. */
__attribute__((format(printf, 2, 3))) static void text_add(struct text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->at) - text->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->at + text->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void text_add_gpu(struct text *text, const struct topology_node *node)
{
	text_add(text, " %#x", topology_gpu_id(node));
}

/* Where to break a line: the last space that fits and is not in parentheses, NULL when there is none. */
static char *find_break(char *line, size_t columns)
{
	char *found = NULL;
	int depth = 0;

	for (size_t i = 0; i <= columns && line[i]; i++) {
		depth += line[i] == '(';
		depth -= line[i] == ')';
		if (line[i] == ' ' && !depth && i)
			found = line + i;
	}
	return found;
}

/* Adds the text to the report, in as many lines as it needs, and empties it. */
static void report_wrapped(struct match_report *report, int indent, size_t columns, struct text *text)
{
	char *rest = text->at, *at;
	int shift = indent;

	while (strlen(rest) + (size_t)shift > columns && !report_full(report)) {
		at = find_break(rest, columns - (size_t)shift);
		if (!at)
			break;
		report_line(report, "%*s%.*s", shift, "", (int)(at - rest), rest);
		rest = at + 1;
		shift = indent + 4;
	}
	report_line(report, "%*s%s", shift, "", rest);
	text_empty(text);
}

static void report_text(struct match_report *report, int indent, struct text *text)
{
	report_wrapped(report, indent, WRAP_COLUMNS, text);
}

static const char *rank_name(enum link_rank rank)
{
	return rank == LINK_XGMI ? "XGMI" : rank == LINK_PCIE ? "PCIe" : "no link";
}

/* The value that a local GPU has where another was wanted. */
static void found_text(const struct obstacle *o, struct text *text)
{
	char value[TOPOLOGY_VALUE_TEXT_MAX];

	if (o->kind == OBSTACLE_PROP) {
		topology_value_text(o->prop, o->found, value, sizeof(value));
		text_add(text, " (%s)", value);
	} else if (o->kind == OBSTACLE_HOST_LINK) {
		text_add(text, " (%s)", o->found >= o->wanted ? "no atomics" : rank_name((enum link_rank)o->found));
	}
}

/* What stands in the way, without the local GPU's own value. */
static void obstacle_text(const struct match_problem *mp, unsigned int thing, const struct obstacle *o,
			  struct text *text)
{
	char wanted[TOPOLOGY_VALUE_TEXT_MAX];
	uint32_t differing;

	switch (o->kind) {
	case OBSTACLE_PROP:
		topology_value_text(o->prop, o->wanted, wanted, sizeof(wanted));
		text_add(text, "%s, wanted %s%s", topology_prop_info(o->prop)->name,
			 topology_prop_info(o->prop)->rule == TOPOLOGY_RULE_AT_LEAST ? "at least " : "", wanted);
		if (topology_prop_info(o->prop)->rule == TOPOLOGY_RULE_CAPABILITY) {
			differing = (uint32_t)(o->wanted ^ o->found) & topology_capability_mask();
			text_add(text, ", differs in %s", topology_capability_name(differing));
		}
		break;
	case OBSTACLE_HOST_LINK:
		text_add(text, "link %s the host, wanted %s", o->from_host ? "from" : "to",
			 rank_name((enum link_rank)o->wanted));
		break;
	case OBSTACLE_PINNED:
		text_add(text, "KFD_DEVICE_MAP chooses %#x, not",
			 topology_gpu_id(local_gpu(mp, (unsigned int)mp->pinned[thing])));
		break;
	default:
		text_add(text, "no obstacle");
	}
}

/* What wanted_text() tells of a saved GPU. */
static const enum topology_prop wanted_props[] = { TOPOLOGY_VENDOR_ID, TOPOLOGY_DEVICE_ID, TOPOLOGY_GFX_TARGET_VERSION,
						   TOPOLOGY_VRAM_SIZE, TOPOLOGY_FW_VERSION };

/* Of one kind: told in one line, whatever the local values. */
static bool similar(const struct obstacle *a, const struct obstacle *b)
{
	uint32_t mask = topology_capability_mask();

	if (a->kind != b->kind || a->prop != b->prop || a->from_host != b->from_host || a->wanted != b->wanted)
		return false;
	/* Which capability differs is part of the line. */
	return a->kind != OBSTACLE_PROP || topology_prop_info(a->prop)->rule != TOPOLOGY_RULE_CAPABILITY ||
	       !((a->found ^ b->found) & mask);
}

/* Did the two saved GPUs want the same, and do they meet the same obstacle on every local one? */
static bool same_story(const struct match_problem *mp, unsigned int a, unsigned int b)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted_props); i++) {
		if (topology_get(saved_gpu(mp, a), wanted_props[i]) != topology_get(saved_gpu(mp, b), wanted_props[i]))
			return false;
	}
	for (unsigned int v = 0; v < mp->m; v++) {
		struct obstacle x = rule_gpu(mp, a, v), y = rule_gpu(mp, b, v);

		if (!similar(&x, &y))
			return false;
	}
	return true;
}

/* One obstacle that a saved GPU meets first on place v, with all local GPUs that have it and their values. */
static void add_obstacle(const struct match_problem *mp, unsigned int thing, unsigned int v, bool dense, bool *told,
			 struct text *text)
{
	struct obstacle o = rule_gpu(mp, thing, v), last = o;

	obstacle_text(mp, thing, &o, text);
	if (o.kind != OBSTACLE_NONE && o.relaxed_by < SETTING_N_FLAGS)
		text_add(text, " (%s=0%s)", setting_name(o.relaxed_by), dense ? "" : " accepts it");
	text_add(text, dense ? ":" : ": local");
	for (unsigned int u = v; u < mp->m; u++) {
		struct obstacle other = rule_gpu(mp, thing, u);

		if (!similar(&o, &other))
			continue;
		told[u] = true;
		if (other.found != last.found)
			found_text(&last, text);
		text_add_gpu(text, local_gpu(mp, u));
		last = other;
	}
	found_text(&last, text);
}

/* The obstacles of a saved GPU, each in a line of its own; dense: one after the other. False: not all fit. */
static bool explain_locals(const struct match_problem *mp, unsigned int thing, bool dense, struct text *text,
			   struct match_report *report)
{
	bool told[ASSIGN_MAX] = { false };

	if (!dense)
		report_text(report, 2, text);
	for (unsigned int v = 0; v < mp->m; v++) {
		if (told[v])
			continue;
		if (report_full(report))
			return false;
		if (dense)
			text_add(text, v ? "; " : "; local GPUs: ");
		add_obstacle(mp, thing, v, dense, told, text);
		if (!dense)
			report_text(report, 4, text);
	}
	if (dense)
		report_wrapped(report, 2, DENSE_COLUMNS, text);
	return true;
}

static void wanted_text(const struct topology_node *node, struct text *text)
{
	unsigned int gfx = (unsigned int)topology_get(node, TOPOLOGY_GFX_TARGET_VERSION);
	char vram[TOPOLOGY_VALUE_TEXT_MAX];

	topology_value_text(TOPOLOGY_VRAM_SIZE, topology_get(node, TOPOLOGY_VRAM_SIZE), vram, sizeof(vram));
	text_add(text, " wanted: device %04x:%04x", (unsigned int)topology_get(node, TOPOLOGY_VENDOR_ID),
		 (unsigned int)topology_get(node, TOPOLOGY_DEVICE_ID));
	if (topology_has(node, TOPOLOGY_GFX_TARGET_VERSION))
		text_add(text, ", gfx%u%x%x", gfx / 10000, gfx / 100 % 100, gfx % 100);
	text_add(text, ", %s VRAM, firmware %u", vram, (unsigned int)topology_get(node, TOPOLOGY_FW_VERSION));
}

/* For these saved GPUs, those with the same story together. False: not all fit. */
static bool list_things(const struct match_problem *mp, const bool *concerned, bool dense, struct match_report *report)
{
	bool told[ASSIGN_MAX] = { false };
	struct text text;

	text_empty(&text);
	for (unsigned int i = 0; i < mp->n; i++) {
		if (!concerned[i] || told[i])
			continue;
		if (report_full(report))
			return false;
		text_add(&text, "saved");
		for (unsigned int j = i; j < mp->n; j++) {
			if (!concerned[j] || told[j] || !same_story(mp, i, j))
				continue;
			told[j] = true;
			text_add_gpu(&text, saved_gpu(mp, j));
		}
		wanted_text(saved_gpu(mp, i), &text);
		if (!explain_locals(mp, i, dense, &text, report))
			return false;
	}
	return true;
}

/* What was wanted, and what is in the way: in lines that are easy to read, or else in fewer. */
static void explain_things(const struct match_problem *mp, const bool *concerned, struct match_report *report)
{
	unsigned int start = report->n_lines;

	if (list_things(mp, concerned, false, report))
		return;
	report->n_lines = start;
	if (!list_things(mp, concerned, true, report))
		report_line(report, "%s", "");
}

static bool fits_nowhere(const struct match_problem *mp, unsigned int thing)
{
	for (unsigned int v = 0; v < mp->m; v++) {
		if (rule_gpu(mp, thing, v).kind == OBSTACLE_NONE)
			return false;
	}
	return true;
}

/* Some saved GPU has no place at all. */
static bool explain_unfit(const struct match_problem *mp, struct match_report *report)
{
	bool unfit[ASSIGN_MAX] = { false };
	unsigned int n = 0;

	for (unsigned int i = 0; i < mp->n; i++) {
		unfit[i] = fits_nowhere(mp, i);
		n += unfit[i];
	}
	if (!n || !mp->m)
		return false;
	report_line(report, "%u of %u saved GPUs fit no local GPU:", n, mp->n);
	explain_things(mp, unfit, report);
	return true;
}

/* Several saved GPUs fit only local ones that are fewer. */
static void explain_crowd(const struct match_problem *mp, const struct assign_result *result,
			  struct match_report *report)
{
	struct text saved, local;
	unsigned int n_saved = 0, n_local = 0;

	text_empty(&saved);
	text_empty(&local);
	text_add(&saved, "saved");
	text_add(&local, "local");
	for (unsigned int i = 0; i < mp->n; i++) {
		if (result->in_crowd[i]) {
			text_add_gpu(&saved, saved_gpu(mp, i));
			n_saved++;
		}
	}
	for (unsigned int v = 0; v < mp->m; v++) {
		if (result->crowd_room[v]) {
			text_add_gpu(&local, local_gpu(mp, v));
			n_local++;
		}
	}
	report_line(report, "%u saved GPUs fit only %u local GPUs:", n_saved, n_local);
	report_text(report, 2, &saved);
	if (n_local)
		report_text(report, 2, &local);
	if (n_local < mp->m)
		explain_things(mp, result->in_crowd, report);
}

static void demand_text(const struct link_demand *demand, char *text, size_t size)
{
	if (demand->max_bandwidth)
		snprintf(text, size, "%s of %u MB/s", rank_name(demand->rank), demand->max_bandwidth);
	else
		snprintf(text, size, "%s", rank_name(demand->rank));
}

/* Does any local link from the one place to the other serve? */
static bool some_link_serves(const struct match_problem *mp, unsigned int from, unsigned int to,
			     const struct link_demand *demand)
{
	const struct topology_node *node = local_gpu(mp, from);

	if (demand->rank == LINK_NONE)
		return true;
	for (unsigned int i = 0; i < node->nr_links; i++) {
		if (node->links[i].to == (int)mp->local_node[to] && rule_link_serves(&node->links[i], demand))
			return true;
	}
	return false;
}

/* What a pair of saved GPUs cannot have on a pair of places. */
struct conflict {
	enum { CONFLICT_NONE, CONFLICT_LINK, CONFLICT_NUMA } kind;
	bool backward; /* the link from the second to the first */
	struct link_demand wanted;
	struct link_demand found;
};

static struct conflict find_conflict(const struct match_problem *mp, unsigned int a, unsigned int b, unsigned int on_a,
				     unsigned int on_b)
{
	for (int backward = 0; backward < 2; backward++) {
		struct link_demand wanted = backward ? rule_link_demand(mp, b, a) : rule_link_demand(mp, a, b);
		unsigned int from = backward ? on_b : on_a, to = backward ? on_a : on_b;

		if (!some_link_serves(mp, from, to, &wanted))
			return (struct conflict){ CONFLICT_LINK, backward, wanted, local_link(mp, from, to) };
	}
	if (rule_numa_demand(mp, a, b) && !rule_numa_serves(mp, on_a, on_b))
		return (struct conflict){ .kind = CONFLICT_NUMA };
	return (struct conflict){ .kind = CONFLICT_NONE };
}

/* Could the pair be placed if there were only these two? */
static bool pair_fits(const struct assign_problem *p, unsigned int a, unsigned int b)
{
	unsigned int kind = p->kind[a * p->n + b];

	for (unsigned int v = 0; kind && v < p->m; v++) {
		const uint64_t *row = assign_row(p, kind, v), *domain = assign_domain(p, b);

		for (unsigned int w = 0; assign_set_has(assign_domain(p, a), v) && w < ASSIGN_WORDS(p->m); w++) {
			if (row[w] & domain[w])
				return true;
		}
	}
	return !kind;
}

/* Of all places for the pair, what the best ones lack. */
static struct conflict least_conflict(const struct match_problem *mp, unsigned int a, unsigned int b)
{
	struct conflict best = { .kind = CONFLICT_NONE };

	for (unsigned int v = 0; v < mp->m; v++) {
		for (unsigned int u = 0; u < mp->m; u++) {
			struct conflict conflict;

			if (u == v || rule_gpu(mp, a, v).kind || rule_gpu(mp, b, u).kind)
				continue;
			conflict = find_conflict(mp, a, b, v, u);
			if (best.kind == CONFLICT_NONE || conflict.found.rank > best.found.rank ||
			    (conflict.found.rank == best.found.rank &&
			     conflict.found.max_bandwidth > best.found.max_bandwidth))
				best = conflict;
		}
	}
	return best;
}

static void explain_pair(const struct match_problem *mp, unsigned int a, unsigned int b,
			 const struct conflict *conflict, struct match_report *report)
{
	uint32_t x = topology_gpu_id(saved_gpu(mp, conflict->backward ? b : a));
	uint32_t y = topology_gpu_id(saved_gpu(mp, conflict->backward ? a : b));
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

/* Pairs that fit nowhere, whatever becomes of the others. */
static bool explain_pairs(const struct match_problem *mp, struct match_report *report)
{
	struct assign_problem problem;
	unsigned int n = 0;

	if (match_build(mp, &problem) < 0)
		return false;
	for (unsigned int a = 0; a < mp->n; a++) {
		for (unsigned int b = a + 1; b < mp->n; b++) {
			struct conflict conflict;

			if (pair_fits(&problem, a, b))
				continue;
			if (!n)
				report_line(report, "pairs of saved GPUs cannot be linked here as they were:");
			if (n++ >= SHOWN)
				continue;
			conflict = least_conflict(mp, a, b);
			explain_pair(mp, a, b, &conflict, report);
		}
	}
	assign_problem_done(&problem);
	if (n > SHOWN)
		report_line(report, "  and %u more pairs", n - SHOWN);
	return n > 0;
}

/* Who is bound to whom: places for "saved" false, things for true. */
static bool bound(const struct match_problem *mp, bool saved, bool numa, unsigned int a, unsigned int b)
{
	if (numa)
		return saved ? rule_numa_demand(mp, a, b) : rule_numa_serves(mp, a, b);
	if (saved)
		return rule_link_demand(mp, a, b).rank != LINK_NONE || rule_link_demand(mp, b, a).rank != LINK_NONE;
	return local_link(mp, a, b).rank != LINK_NONE;
}

/* Prints the groups of GPUs that hang together, e.g. "0x1 0x2 | 0x3". */
static void explain_groups(const struct match_problem *mp, bool saved, bool numa, struct match_report *report)
{
	unsigned int n = saved ? mp->n : mp->m, queue[ASSIGN_MAX], head, tail;
	struct text text;
	bool seen[ASSIGN_MAX] = { false };

	text_empty(&text);
	text_add(&text, "%s %s:", saved ? "saved" : "local", numa ? "by NUMA node" : "by links");
	for (unsigned int start = 0; start < n; start++) {
		if (seen[start])
			continue;
		if (start)
			text_add(&text, " |");
		seen[start] = true;
		queue[0] = start;
		for (head = 0, tail = 1; head < tail; head++) {
			text_add_gpu(&text, saved ? saved_gpu(mp, queue[head]) : local_gpu(mp, queue[head]));
			for (unsigned int i = 0; i < n; i++) {
				if (seen[i] || !bound(mp, saved, numa, queue[head], i))
					continue;
				seen[i] = true;
				queue[tail++] = i;
			}
		}
	}
	report_text(report, 2, &text);
}

/* For a local GPU: why the stuck one cannot go there, given the attempt. */
static void explain_place(const struct match_problem *mp, const struct assign_result *result, unsigned int place,
			  struct match_report *report)
{
	unsigned int stuck = (unsigned int)result->stuck;
	uint32_t id = topology_gpu_id(local_gpu(mp, place));
	char wanted[48], found[48];

	for (unsigned int i = 0; i < mp->n; i++) {
		struct conflict conflict;

		if (result->partial[i] < 0 || result->partial[i] == (int)place)
			continue;
		conflict = find_conflict(mp, stuck, i, place, (unsigned int)result->partial[i]);
		if (conflict.kind == CONFLICT_NONE)
			continue;
		demand_text(&conflict.wanted, wanted, sizeof(wanted));
		demand_text(&conflict.found, found, sizeof(found));
		if (conflict.kind == CONFLICT_NUMA)
			report_line(report, "    local %#x: is not on the NUMA node of the GPU for saved %#x", id,
				    topology_gpu_id(saved_gpu(mp, i)));
		else
			report_line(report, "    local %#x: %s the GPU for saved %#x is %s, wanted %s", id,
				    conflict.backward ? "the link from" : "the link to",
				    topology_gpu_id(saved_gpu(mp, i)), found, wanted);
		return;
	}
	report_line(report, "    local %#x: would leave too few for the others", id);
}

static bool is_taken(const struct match_problem *mp, const struct assign_result *result, unsigned int place)
{
	for (unsigned int i = 0; i < mp->n; i++) {
		if (result->partial[i] == (int)place)
			return true;
	}
	return false;
}

/* How many of the GPUs linked with this one could be around it, at most, when it is on this place? */
static unsigned int room_around(const struct assign_problem *p, unsigned int thing, unsigned int place,
				unsigned int *ret_wanted)
{
	uint64_t room[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 };
	unsigned int n_placeable = 0, n_room = 0;

	*ret_wanted = 0;
	for (unsigned int j = 0; j < p->n; j++) {
		unsigned int kind = p->kind[thing * p->n + j];
		uint64_t any = 0;

		if (!kind)
			continue;
		for (unsigned int w = 0; w < ASSIGN_WORDS(p->m); w++) {
			uint64_t places = assign_row(p, kind, place)[w] & assign_domain(p, j)[w];

			room[w] |= places;
			any |= places;
		}
		n_placeable += any != 0;
		(*ret_wanted)++;
	}
	for (unsigned int w = 0; w < ASSIGN_WORDS(p->m); w++)
		n_room += (unsigned int)__builtin_popcountll(room[w]);
	return n_room < n_placeable ? n_room : n_placeable;
}

/* A saved GPU whose neighbourhood exists nowhere. */
static void explain_neighbours(const struct match_problem *mp, unsigned int thing, struct match_report *report)
{
	struct text text;
	struct assign_problem problem;
	unsigned int wanted, room;

	text_empty(&text);
	if (match_build(mp, &problem) < 0)
		return;
	text_add(&text, "saved %#x was linked with or on the NUMA node of", topology_gpu_id(saved_gpu(mp, thing)));
	for (unsigned int j = 0; j < mp->n; j++) {
		if (problem.kind[thing * mp->n + j])
			text_add_gpu(&text, saved_gpu(mp, j));
	}
	report_text(report, 2, &text);
	text_add(&text, "local GPUs have room around them for:");
	for (unsigned int v = 0; v < mp->m; v++) {
		if (!assign_set_has(assign_domain(&problem, thing), v))
			continue;
		room = room_around(&problem, thing, v, &wanted);
		if (room < wanted)
			text_add(&text, " %#x (%u of these)", topology_gpu_id(local_gpu(mp, v)), room);
		else
			text_add(&text, " %#x (too few for the others)", topology_gpu_id(local_gpu(mp, v)));
	}
	assign_problem_done(&problem);
	report_text(report, 4, &text);
}

/* Each pair could be, but not all of them at once. */
static void explain_attempt(const struct match_problem *mp, const struct assign_result *result,
			    struct match_report *report)
{
	struct text text;
	unsigned int n = 0, shown = 0;

	text_empty(&text);
	report_line(report, "no choice of local GPUs keeps all links and NUMA nodes of the saved ones together:");
	text_add(&text, "an attempt got as far as saved=local");
	for (unsigned int i = 0; i < mp->n; i++) {
		if (result->partial[i] < 0)
			continue;
		text_add(&text, " %#x=%#x", topology_gpu_id(saved_gpu(mp, i)),
			 topology_gpu_id(local_gpu(mp, (unsigned int)result->partial[i])));
		n++;
	}
	if (!n && result->stuck >= 0)
		explain_neighbours(mp, (unsigned int)result->stuck, report);
	if (!n || result->stuck < 0)
		return;
	report_text(report, 2, &text);
	report_line(report,
		    "  then saved %#x has no place:", topology_gpu_id(saved_gpu(mp, (unsigned int)result->stuck)));
	for (unsigned int v = 0; v < mp->m && shown < 2 * SHOWN; v++) {
		if (is_taken(mp, result, v) || rule_gpu(mp, (unsigned int)result->stuck, v).kind)
			continue;
		explain_place(mp, result, v, report);
		shown++;
	}
}

/* Would there be a map if this were not checked? */
static bool solvable_without(const struct match_problem *mp, bool links, bool numa)
{
	_cleanup_free_ struct match_problem *relaxed = malloc(sizeof(*relaxed));
	_cleanup_free_ struct assign_result *result = malloc(sizeof(*result));
	struct assign_problem problem;
	int r;

	if (!relaxed || !result)
		return false;
	*relaxed = *mp;
	relaxed->links_relaxed = links;
	relaxed->numa_relaxed = numa;
	if (match_build(relaxed, &problem) < 0)
		return false;
	r = assign_solve(&problem, RELAXED_WORK_LIMIT, result);
	assign_problem_done(&problem);
	return r == 0;
}

static void explain_relaxation(const struct match_problem *mp, struct match_report *report)
{
	bool links = mp->settings->flag[SETTING_TOPOLOGY_CHECK], numa = mp->settings->flag[SETTING_NUMA_CHECK];

	if (numa && solvable_without(mp, false, true))
		report_line(report, "with KFD_NUMA_CHECK=0 there is a map");
	else if (links && solvable_without(mp, true, false))
		report_line(report, "with KFD_TOPOLOGY_CHECK=0 there is a map");
	else if (links && numa && solvable_without(mp, true, true))
		report_line(report, "with KFD_TOPOLOGY_CHECK=0 and KFD_NUMA_CHECK=0 there is a map");
}

static void explain_links(const struct match_problem *mp, const struct assign_result *result,
			  struct match_report *report)
{
	bool links = mp->settings->flag[SETTING_TOPOLOGY_CHECK], numa = mp->settings->flag[SETTING_NUMA_CHECK];

	if (!explain_pairs(mp, report))
		explain_attempt(mp, result, report);
	for (int saved = 1; links && saved >= 0; saved--)
		explain_groups(mp, saved, false, report);
	for (int saved = 1; numa && saved >= 0; saved--)
		explain_groups(mp, saved, true, report);
	explain_relaxation(mp, report);
}

void match_explain(const struct match_problem *mp, const struct assign_result *result, struct match_report *report)
{
	report_line(report,
		    "no map of %u saved GPUs to %u local ones (%u more may not be used by the process, %u are hidden)",
		    mp->n, mp->m, mp->n_not_candidates, mp->local->nr_hidden);
	if (explain_unfit(mp, report))
		return;
	if (result->crowded)
		explain_crowd(mp, result, report);
	else
		explain_links(mp, result, report);
}
