// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choose: the local GPUs of one process of a restore. A saved GPU becomes the same local one in all processes, and no
 * two become the same one: the first process chooses, for the memory that all of them need together. Pure, but for the
 * caller's wait.
 */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "match/match.h"

#define MIB(bytes) ((bytes) >> 20)

/* ---- what the processes have in common ---- */

static const struct match_choice *find_choice(const struct match_choices *choices, uint32_t saved_minor)
{
	for (unsigned int i = 0; i < choices->nr; i++)
		if (choices->list[i].saved_minor == saved_minor)
			return &choices->list[i];
	return NULL;
}

/* A new one where there is none. NULL: the table is full. */
static struct match_choice *choice_of(struct match_choices *choices, uint32_t saved_minor)
{
	unsigned int i = 0;

	while (i < choices->nr && choices->list[i].saved_minor != saved_minor)
		i++;
	if (i == ARRAY_SIZE(choices->list))
		return NULL;
	if (i == choices->nr)
		choices->list[choices->nr++] = (struct match_choice){ .saved_minor = saved_minor };
	return &choices->list[i];
}

uint32_t match_choice_local(const struct match_choices *choices, uint32_t saved_minor)
{
	const struct match_choice *choice = find_choice(choices, saved_minor);

	return choice ? choice->local_gpu_id : 0;
}

int match_choice_saved(const struct match_choices *choices, uint32_t local_gpu_id)
{
	for (unsigned int i = 0; i < choices->nr; i++)
		if (choices->list[i].local_gpu_id == local_gpu_id)
			return (int)choices->list[i].saved_minor;
	return -ENOENT;
}

void match_need(struct match_choices *choices, const struct topology *saved, const uint64_t *vram_needed, bool keeps_ids)
{
	choices->keeps_ids |= keeps_ids;
	for (unsigned int i = 0; i < saved->nr_nodes; i++) {
		struct match_choice *choice =
			topology_is_gpu(saved->nodes[i]) ? choice_of(choices, topology_minor(saved->nodes[i])) : NULL;

		if (choice)
			choice->vram_needed += vram_needed[i];
	}
}

int match_remember(struct match_choices *choices, const struct match_pair *pair)
{
	struct match_choice *choice = choice_of(choices, pair->saved_minor);

	if (!choice)
		return -ENOSPC;
	choice->local_gpu_id = pair->actual_gpu_id;
	return 0;
}

/* ---- one process ---- */

static bool is_named(const struct match_process *process, int saved)
{
	for (unsigned int i = 0; i < process->options->nr_pairs; i++)
		if (topology_find_ref(process->saved, &process->options->pairs[i].saved) == saved)
			return true;
	return false;
}

/* The pairs that the user names, and behind them what other processes have chosen. */
static unsigned int collect_pairs(const struct match_process *process, struct device_map_entry *pairs)
{
	unsigned int nr = process->options->nr_pairs;

	for (unsigned int i = 0; i < nr; i++)
		pairs[i] = process->options->pairs[i];
	for (unsigned int i = 0; nr < TOPOLOGY_MAX_NODES && i < process->saved->nr_nodes; i++) {
		const struct topology_node *node = process->saved->nodes[i];
		uint32_t local = topology_is_gpu(node) ? match_choice_local(process->choices, topology_minor(node)) : 0;

		if (local && !is_named(process, (int)i))
			pairs[nr++] = (struct device_map_entry){ .saved = { DEVICE_REF_GPU_ID, topology_gpu_id(node) },
								 .local = { DEVICE_REF_GPU_ID, local } };
	}
	return nr;
}

/* What others have chosen for a GPU that the process does not have is theirs. */
static void drop_taken(const struct match_process *process, struct match_candidates *candidates)
{
	for (unsigned int i = 0; i < process->machine->nr_nodes; i++) {
		int saved = match_choice_saved(process->choices, topology_gpu_id(process->machine->nodes[i]));

		if (saved >= 0 && !candidates->reason[i][0] && topology_find_minor(process->saved, (uint32_t)saved) < 0)
			snprintf(candidates->reason[i], sizeof(candidates->reason[i]),
				 "another process has it in the place of renderD%d", saved);
	}
}

/* For the processes together where that is known: the others follow this one. */
static uint64_t needed_of(const struct match_process *process, const struct match_pair *pair)
{
	const struct match_choice *choice = find_choice(process->choices, pair->saved_minor);
	uint64_t own = process->vram_needed[pair->saved];

	return choice && choice->vram_needed > own ? choice->vram_needed : own;
}

static bool has_room(const struct match_process *process, const struct gpu_usage *usage, unsigned int local,
		     uint64_t needed)
{
	if (process->wait_for_room && usage->knows_vram && needed > usage->vram_free)
		process->wait_for_room(process->arg, local, needed);
	return !usage->knows_vram || needed <= usage->vram_free;
}

/* Drops GPUs of the map without room, but for those that others have chosen. Whether there were any. */
static bool drop_full(const struct match_process *process, const struct match_map *map,
		      struct match_candidates *candidates)
{
	bool dropped = false;

	for (unsigned int i = 0; !process->options->relaxed[MATCH_CHECK_VRAM_SIZE] && i < map->nr_pairs; i++) {
		const struct match_pair *pair = &map->pairs[i];
		const struct gpu_usage *usage = &candidates->usage[pair->local];
		uint64_t needed = needed_of(process, pair);

		if (match_choice_local(process->choices, pair->saved_minor) ||
		    has_room(process, usage, pair->local, needed))
			continue;
		snprintf(candidates->reason[pair->local], sizeof(candidates->reason[pair->local]),
			 "%" PRIu64 " MiB of its VRAM are free, and gpu %#x has %" PRIu64 " MiB in the images (%s)",
			 MIB(usage->vram_free), pair->user_gpu_id, MIB(needed),
			 match_check_name(MATCH_CHECK_VRAM_SIZE));
		dropped = true;
	}
	return dropped;
}

static int match_once(const struct match_process *process, const struct match_candidates *candidates,
		      struct match_options *options, struct match_map **ret)
{
	const char *unusable[TOPOLOGY_MAX_NODES];
	bool busy[TOPOLOGY_MAX_NODES];

	for (unsigned int i = 0; i < process->machine->nr_nodes; i++) {
		unusable[i] = candidates->reason[i][0] ? candidates->reason[i] : NULL;
		busy[i] = candidates->usage[i].has_queues;
	}
	options->unusable = unusable;
	options->busy = process->keeps_ids ? NULL : busy;
	return match_devices(process->saved, process->machine, options, ret);
}

int match_choose(const struct match_process *process, struct match_candidates *candidates, struct match_map **ret)
{
	struct device_map_entry pairs[TOPOLOGY_MAX_NODES];
	struct match_options options = *process->options;
	struct match_map *map = NULL;
	int err;

	options.pairs = pairs;
	options.nr_pairs = collect_pairs(process, pairs);
	options.nr_followed = options.nr_pairs - process->options->nr_pairs;
	drop_taken(process, candidates);
	err = match_once(process, candidates, &options, &map);
	while (!err && drop_full(process, map, candidates)) {
		match_map_free(steal_ptr(map));
		err = match_once(process, candidates, &options, &map);
	}
	if (!err)
		*ret = map;
	return err;
}
