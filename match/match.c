// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: from two topologies, candidates and settings to a map or a refusal.
 *
 * Pure: reads what it is given, keeps nothing, logs nothing. The rules are in
 * match/rules.c, the search in match/assign.c, the words
 * for a refusal in match/report.c.
 */
#define _GNU_SOURCE
#include <stdarg.h>

#include "match/internal.h"
#include "amdgpu_plugin_util.h"

void report_line(struct match_report *report, const char *fmt, ...)
{
	va_list args;

	if (report->n_lines == MATCH_REPORT_LINES) {
		snprintf(report->line[MATCH_REPORT_LINES - 1], MATCH_REPORT_COLUMNS, "... (more than fits here)");
		return;
	}
	va_start(args, fmt);
	vsnprintf(report->line[report->n_lines], MATCH_REPORT_COLUMNS, fmt, args);
	va_end(args);
	report->n_lines++;
}

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct topology *t = arg;
	uint32_t x = t->nodes[*(const uint16_t *)a]->id, y = t->nodes[*(const uint16_t *)b]->id;

	return x < y ? -1 : x > y;
}

static void collect_gpus(struct match_problem *mp, const bool *candidates)
{
	for (unsigned int i = 0; i < mp->saved->nr_nodes; i++) {
		if (topology_is_gpu(mp->saved->nodes[i]))
			mp->saved_node[mp->n++] = (uint16_t)i;
	}
	for (unsigned int i = 0; i < mp->local->nr_nodes; i++) {
		if (!topology_is_gpu(mp->local->nodes[i]))
			continue;
		if (candidates && !candidates[i])
			mp->n_not_candidates++;
		else
			mp->local_node[mp->m++] = (uint16_t)i;
	}
	qsort_r(mp->local_node, mp->m, sizeof(mp->local_node[0]), compare_nodes, (void *)mp->local);
	for (unsigned int i = 0; i < TOPOLOGY_MAX_NODES; i++)
		mp->pinned[i] = -1;
}

static bool ref_names_node(const struct device_ref *ref, const struct topology_node *node)
{
	/* Above bus, device and function there may be the number of a partition, which has no address of its own. */
	uint64_t location = topology_get(node, TOPOLOGY_LOCATION_ID) & 0xffff;
	uint64_t pci = topology_get(node, TOPOLOGY_DOMAIN) << 32 | location;

	switch (ref->kind) {
	case DEVICE_REF_RENDER_MINOR:
		return topology_has(node, TOPOLOGY_DRM_RENDER_MINOR) &&
		       topology_get(node, TOPOLOGY_DRM_RENDER_MINOR) == ref->value;
	case DEVICE_REF_PCI:
		return topology_has(node, TOPOLOGY_LOCATION_ID) && pci == ref->value;
	default:
		return topology_gpu_id(node) == ref->value;
	}
}

/* Index in nodes[]; -ENODEV: none; -EEXIST: several. */
static int find_ref(const struct topology *t, const struct device_ref *ref)
{
	int found = -ENODEV;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (!topology_is_gpu(t->nodes[i]) || !ref_names_node(ref, t->nodes[i]))
			continue;
		if (found >= 0)
			return -EEXIST;
		found = (int)i;
	}
	return found;
}

static int report_ref(struct match_report *report, const struct topology *t, const struct device_ref *ref,
		      const char *side, int err)
{
	bool has_pci = false;
	char text[DEVICE_REF_TEXT_MAX];

	device_ref_text(ref, text, sizeof(text));
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		has_pci = has_pci || topology_has(t->nodes[i], TOPOLOGY_LOCATION_ID);
	if (err == -EEXIST)
		report_line(report, "KFD_DEVICE_MAP: %s names several GPUs of the %s; use gpu ids", text, side);
	else if (ref->kind == DEVICE_REF_PCI && !has_pci)
		report_line(report, "KFD_DEVICE_MAP: %s: the %s has no PCI addresses; use gpu ids or render minors",
			    text, side);
	else
		report_line(report, "KFD_DEVICE_MAP: %s is no GPU of the %s", text, side);
	return -EINVAL;
}

static int index_of(const uint16_t *nodes, unsigned int n, int node)
{
	for (unsigned int i = 0; i < n; i++) {
		if (nodes[i] == node)
			return (int)i;
	}
	return -ENODEV;
}

static int pin(struct match_problem *mp, const struct device_map_entry *entry, struct match_report *report)
{
	int saved = find_ref(mp->saved, &entry->saved);
	int local = find_ref(mp->local, &entry->local);
	char text[DEVICE_REF_TEXT_MAX];
	int thing, place;

	if (saved < 0)
		return report_ref(report, mp->saved, &entry->saved, "image", saved);
	if (local < 0)
		return report_ref(report, mp->local, &entry->local, "machine", local);
	thing = index_of(mp->saved_node, mp->n, saved);
	place = index_of(mp->local_node, mp->m, local);
	device_ref_text(&entry->local, text, sizeof(text));
	if (place < 0) {
		report_line(report, "KFD_DEVICE_MAP: the restored process may not use %s of this machine", text);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < mp->n; i++) {
		if ((int)i == thing ? mp->pinned[i] >= 0 : mp->pinned[i] == place) {
			device_ref_text(&entry->saved, text, sizeof(text));
			report_line(report, "KFD_DEVICE_MAP: the entry for saved GPU %s names a GPU a second time",
				    text);
			return -EINVAL;
		}
	}
	mp->pinned[thing] = place;
	return 0;
}

static int apply_device_map(struct match_problem *mp, struct match_report *report)
{
	for (unsigned int i = 0; i < mp->settings->n_device_map; i++) {
		int r = pin(mp, &mp->settings->device_map[i], report);

		if (r < 0)
			return r;
	}
	return 0;
}

static int make_map(const struct match_problem *mp, const struct assign_result *result, struct match_map **ret)
{
	struct match_map *map = calloc(1, sizeof(*map) + mp->n * sizeof(map->pairs[0]));

	if (!map)
		return -ENOMEM;
	map->nearest = result->best;
	map->n = mp->n;
	for (unsigned int i = 0; i < mp->n; i++) {
		unsigned int place = (unsigned int)result->place[i];
		const struct topology_node *saved = saved_gpu(mp, i), *local = local_gpu(mp, place);

		map->pairs[i] = (struct match_pair){
			.saved = mp->saved_node[i],
			.local = mp->local_node[place],
			.user_gpu_id = topology_gpu_id(saved),
			.actual_gpu_id = topology_gpu_id(local),
			.saved_minor = (uint32_t)topology_get(saved, TOPOLOGY_DRM_RENDER_MINOR),
			.local_minor = (uint32_t)topology_get(local, TOPOLOGY_DRM_RENDER_MINOR),
		};
	}
	*ret = map;
	return 0;
}

static int solve(const struct match_problem *mp, struct match_map **ret, struct match_report *report)
{
	_cleanup_free_ struct assign_result *result = malloc(sizeof(*result));
	struct assign_problem problem;
	int r;

	if (!result)
		return -ENOMEM;
	r = match_build(mp, &problem);
	if (r == -E2BIG)
		report_line(report, "the image's GPUs are linked in more than %d different ways", ASSIGN_MAX_KINDS);
	if (r < 0)
		return r;
	r = assign_solve(&problem, 0, result);
	assign_problem_done(&problem);
	if (r == 0)
		return make_map(mp, result, ret);
	if (r == -E2BIG)
		report_line(report,
			    "no map of %u saved to %u local GPUs found within the limit of steps; fix some pairs by "
			    "KFD_DEVICE_MAP",
			    mp->n, mp->m);
	if (r == -ENODEV)
		match_explain(mp, result, report);
	return r;
}

int match_devices(const struct topology *saved, const struct topology *local, const bool *candidates,
		  const struct settings *settings, struct match_map **ret, struct match_report *report)
{
	_cleanup_free_ struct match_problem *mp = calloc(1, sizeof(*mp));
	int r;

	report->n_lines = 0;
	if (!mp) {
		report_line(report, "matching GPUs: out of memory");
		return -ENOMEM;
	}
	mp->saved = saved;
	mp->local = local;
	mp->settings = settings;
	collect_gpus(mp, candidates);
	r = apply_device_map(mp, report);
	if (r < 0)
		return r;
	rule_prepare(mp);
	r = solve(mp, ret, report);
	if (r == -ENOMEM)
		report_line(report, "matching %u saved to %u local GPUs: out of memory", mp->n, mp->m);
	return r;
}

void match_map_free(struct match_map *map)
{
	free(map);
}

const struct match_pair *match_by_user_gpu_id(const struct match_map *map, uint32_t user_gpu_id)
{
	for (unsigned int i = 0; i < map->n; i++) {
		if (map->pairs[i].user_gpu_id == user_gpu_id)
			return &map->pairs[i];
	}
	return NULL;
}

const struct match_pair *match_by_saved_minor(const struct match_map *map, uint32_t saved_minor)
{
	for (unsigned int i = 0; i < map->n; i++) {
		if (map->pairs[i].saved_minor == saved_minor)
			return &map->pairs[i];
	}
	return NULL;
}
