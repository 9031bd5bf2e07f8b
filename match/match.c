// SPDX-License-Identifier: GPL-2.0-only
/*
 * Match: from two topologies and options to a map or a refusal. Pure: reads what it is given, keeps and logs nothing.
 * match/rules.c has the rules, match/search.c the search, match/report.c the words of a refusal.
 */
#include "match/internal.h"

/* Steps of about a nanosecond: an ordinary machine needs a tenth of them, and all of them take 100 ms. */
#ifndef LIMIT
#define LIMIT (60 * 1000 * 1000)
#endif

/* ---- the pairs that the user names ---- */

static int fail_ref(const struct topology *t, const struct device_ref *ref, const char *side, int err)
{
	bool has_pci = false;
	char text[DEVICE_REF_TEXT_MAX];

	device_ref_text(ref, text, sizeof(text));
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		has_pci = has_pci || topology_has(t->nodes[i], TOPOLOGY_LOCATION_ID);
	if (err == -EEXIST)
		return fail(-EINVAL, "KFD_DEVICE_MAP: %s names several GPUs of the %s; use gpu ids", text, side);
	if (ref->kind == DEVICE_REF_PCI && !has_pci)
		return fail(-EINVAL, "KFD_DEVICE_MAP: %s: the %s has no PCI addresses; use gpu ids or render minors",
			    text, side);
	if (t->nr_hidden)
		return fail(-EINVAL,
			    "KFD_DEVICE_MAP: %s is no GPU of the %s, or one of the %u that the device cgroup "
			    "(container) hides",
			    text, side, t->nr_hidden);
	return fail(-EINVAL, "KFD_DEVICE_MAP: %s is no GPU of the %s", text, side);
}

static int index_of(const uint16_t *nodes, unsigned int nr, int node)
{
	for (unsigned int i = 0; i < nr; i++)
		if (nodes[i] == node)
			return (int)i;
	return -ENODEV;
}

static int pin(struct match *m, const struct device_map_entry *entry, bool follows)
{
	int saved = topology_find_ref(m->saved, &entry->saved);
	int local = topology_find_ref(m->local, &entry->local);
	char text[DEVICE_REF_TEXT_MAX];
	int n_saved, n_local;

	if (saved < 0)
		return fail_ref(m->saved, &entry->saved, "image", saved);
	if (local < 0)
		return fail_ref(m->local, &entry->local, "machine", local);
	n_saved = index_of(m->saved_node, m->nr_saved, saved);
	n_local = index_of(m->local_node, m->nr_local, local);
	if (n_local < 0) {
		device_ref_text(&entry->local, text, sizeof(text));
		return fail(-EINVAL, "KFD_DEVICE_MAP: the restored process may not use %s of this machine: %s", text,
			    m->options->unusable[local]);
	}
	for (int i = 0; i < (int)m->nr_saved; i++) {
		if (i == n_saved ? m->pinned[i] >= 0 : m->pinned[i] == n_local) {
			device_ref_text(&entry->saved, text, sizeof(text));
			return fail(-EINVAL, "KFD_DEVICE_MAP: the entry for saved GPU %s names a GPU a second time",
				    text);
		}
	}
	m->pinned[n_saved] = n_local;
	m->follows[n_saved] = follows;
	return 0;
}

/* ---- the map ---- */

/* Of busy GPUs, only those that the process' work cannot do without are tried at first. */
static int solve(struct match *m, struct match_map **ret)
{
	int err = -ENODEV, becomes[GPUS_MAX]; /* what each saved GPU does */
	struct match_map *map;
	struct crowd crowd;

	for (enum idle idle = IDLE_WORK; idle <= IDLE_NONE && (err == -ENODEV || err == -E2BIG); idle++)
		if (rule_worth(m, idle) || idle == IDLE_WORK)
			err = search_map(m, LIMIT, becomes, &crowd);
	if (err == -ENODEV)
		return report_refusal(m, &crowd);
	if (err == -E2BIG)
		return fail(err,
			    "undecided whether there is a map of %u saved to %u local GPUs; name pairs by "
			    "KFD_DEVICE_MAP",
			    m->nr_saved, m->nr_local);
	map = err ? NULL : calloc(1, sizeof(*map) + m->nr_saved * sizeof(map->pairs[0]));
	if (!map)
		return err ? err : -ENOMEM;
	map->nr_pairs = m->nr_saved;
	for (unsigned int i = 0; i < m->nr_saved; i++) {
		unsigned int v = (unsigned int)becomes[i];
		const struct topology_node *saved = saved_gpu(m, i), *local = local_gpu(m, v);

		map->pairs[i] = (struct match_pair){
			.saved = m->saved_node[i],
			.local = m->local_node[v],
			.user_gpu_id = topology_gpu_id(saved),
			.actual_gpu_id = topology_gpu_id(local),
			.saved_minor = topology_minor(saved),
			.local_minor = topology_minor(local),
		};
	}
	*ret = map;
	return 0;
}

int match_devices(const struct topology *saved, const struct topology *local, const struct match_options *options,
		  struct match_map **ret)
{
	_cleanup_free_ struct match *m = calloc(1, sizeof(*m));
	const char *const *unusable = options->unusable;
	int err = 0;

	if (!m)
		return -ENOMEM;
	m->saved = saved;
	m->local = local;
	m->options = options;
	/* The machine's nodes come in the order of their numbers (kernel/sysfs.c). */
	for (unsigned int i = 0; i < saved->nr_nodes; i++)
		if (topology_is_gpu(saved->nodes[i]))
			m->saved_node[m->nr_saved++] = (uint16_t)i;
	for (unsigned int i = 0; i < local->nr_nodes; i++)
		if (topology_is_gpu(local->nodes[i]) && !(unusable && unusable[i]))
			m->local_node[m->nr_local++] = (uint16_t)i;
	memset(m->pinned, -1, sizeof(m->pinned));
	for (unsigned int i = 0; !err && i < options->nr_pairs; i++)
		err = pin(m, &options->pairs[i], i + options->nr_followed >= options->nr_pairs);
	if (err)
		return err;
	err = rule_prepare(m);
	if (!err)
		err = solve(m, ret);
	free(m->serves);
	return err;
}
