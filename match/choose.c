// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choose: the local GPUs of one process of a restore. A saved GPU becomes the same local one in all processes, and no
 * two become the same one: the first process chooses, for the memory that all of them need together. Pure, but for the
 * caller's wait. GPUs are known by the index of their nodes here.
 */
#include "amdgpu_plugin_util.h"
#include "match/match.h"

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
	const struct match_choice *found = find_choice(choices, saved_minor);

	if (!found && choices->nr < ARRAY_SIZE(choices->list)) {
		found = &choices->list[choices->nr++];
		*(struct match_choice *)found = (struct match_choice){ .saved_minor = saved_minor };
	}
	return (struct match_choice *)found;
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

void match_need(struct match_choices *choices, const struct topology *saved, const struct gpu_work *work,
		bool keeps_ids)
{
	choices->keeps_ids |= keeps_ids;
	for (unsigned int i = 0; i < saved->nr_nodes; i++) {
		struct match_choice *choice =
			topology_is_gpu(saved->nodes[i]) ? choice_of(choices, topology_minor(saved->nodes[i])) : NULL;

		if (!choice)
			continue;
		choice->work.vram_needed += work[i].vram_needed;
		choice->work.vram_later += work[i].vram_later;
		choice->work.has_queues |= work[i].has_queues;
	}
}

void match_note_pairs(struct match_choices *choices, const struct topology *saved, const struct device_map_entry *pairs,
		      unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		choices->is_named[i] |= topology_find_ref(saved, &pairs[i].saved) != -ENODEV;
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

/* For room on the GPUs that it would choose. */
static void wait_for_room(const struct match_process *process, const struct match_options *options,
			  struct gpu_usage *usage)
{
	const struct topology *machine = process->machine;
	struct gpu_usage queues[TOPOLOGY_MAX_NODES];
	struct match_options without_room = *options;
	_cleanup_free_ struct match_map *map = NULL;

	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		queues[i] = (struct gpu_usage){ .has_queues = usage[i].has_queues };
	without_room.usage = queues;
	if (!options->work || options->relaxed[MATCH_CHECK_VRAM_SIZE] ||
	    match_devices(process->saved, machine, &without_room, &map))
		return;
	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		unsigned int local = map->pairs[i].local;
		uint64_t needed = 0;

		/* On the whole device; of what others have chosen, the memory is there. */
		for (const struct match_pair *pair = map->pairs; pair < map->pairs + map->nr_pairs; pair++)
			if (topology_same_device(machine->nodes[pair->local], machine->nodes[local]) &&
			    !match_choice_local(process->choices, pair->saved_minor))
				needed += options->work[pair->saved].vram_needed;
		if (usage[local].vram_known && needed > usage[local].vram_free)
			process->wait_for_room(process->arg, local, needed);
	}
}

/* @resume: on idle GPUs with room for what a resume allocates, too, for which it does not wait. */
static int choose(const struct match_process *process, bool resume, struct match_candidates *candidates,
		  struct match_map **ret)
{
	const struct topology *saved = process->saved, *machine = process->machine;
	struct device_map_entry pairs[TOPOLOGY_MAX_NODES];
	const char *unusable[TOPOLOGY_MAX_NODES];
	struct gpu_work work[TOPOLOGY_MAX_NODES];
	struct match_options options = *process->options;
	bool named[TOPOLOGY_MAX_NODES] = { false }, any_work = false;
	unsigned int nr_named = 0;

	/* The pairs that the user names, and behind them what other processes have chosen. */
	for (unsigned int i = 0; i < process->options->nr_pairs; i++) {
		int node = topology_find_ref(saved, &options.pairs[i].saved);

		if (node == -ENODEV && process->choices->is_named[i])
			continue;
		pairs[nr_named++] = options.pairs[i];
		if (node >= 0)
			named[node] = true;
	}
	options.nr_pairs = nr_named;
	for (unsigned int i = 0; i < saved->nr_nodes; i++) {
		const struct match_choice *choice = find_choice(process->choices, topology_minor(saved->nodes[i]));

		work[i] = process->work[i];
		if (choice && topology_is_gpu(saved->nodes[i])) {
			/* Of the processes together where that is known: the others follow this one. */
			work[i].has_queues |= choice->work.has_queues;
			if (choice->work.vram_needed > work[i].vram_needed)
				work[i].vram_needed = choice->work.vram_needed;
			if (resume)
				work[i].vram_needed += choice->work.vram_later;
			if (choice->local_gpu_id && !named[i] && options.nr_pairs < TOPOLOGY_MAX_NODES)
				pairs[options.nr_pairs++] = (struct device_map_entry){
					.saved = { DEVICE_REF_GPU_ID, topology_gpu_id(saved->nodes[i]) },
					.local = { DEVICE_REF_GPU_ID, choice->local_gpu_id },
				};
		}
		any_work |= work[i].has_queues || work[i].vram_needed;
	}
	/* What others have chosen for a GPU that the process does not have is theirs. */
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		int minor = match_choice_saved(process->choices, topology_gpu_id(machine->nodes[i]));
		char *reason = candidates->reason[i];

		if (minor >= 0 && !reason[0] && topology_find_minor(saved, (uint32_t)minor) < 0)
			snprintf(reason, sizeof(candidates->reason[i]), "another process uses it in place of renderD%d", minor);
		unusable[i] = reason[0] ? reason : NULL;
		/* A preference does not lead to a GPU on which others may have an SDMA queue of the same number. The queues on
		 * one that was chosen before are those of this restore. */
		if (resume && minor < 0 && !unusable[i] && candidates->usage[i].has_queues)
			unusable[i] = "others use it";
	}
	options.nr_followed = options.nr_pairs - nr_named;
	options.pairs = pairs;
	options.unusable = unusable;
	options.usage = candidates->usage;
	options.work = any_work ? work : NULL;
	if (process->wait_for_room && !resume)
		wait_for_room(process, &options, candidates->usage);
	return match_devices(saved, machine, &options, ret);
}

/* ---- the attempts ---- */

/*
 * What was chosen before, and what the process with most GPUs would choose for those of this one. False: this one is
 * not a part of that.
 */
static bool choose_for_larger(const struct match_process *process, bool resume, struct match_candidates *candidates,
			      struct match_choices *ret)
{
	struct match_process larger = *process;
	_cleanup_free_ struct match_map *map = NULL;

	if (!process->largest || topology_count_gpus(process->saved) >= topology_count_gpus(process->largest))
		return false;
	for (unsigned int i = 0; i < process->saved->nr_nodes; i++)
		if (topology_is_gpu(process->saved->nodes[i]) &&
		    topology_find_minor(process->largest, topology_minor(process->saved->nodes[i])) < 0)
			return false;
	larger.saved = process->largest;
	memset(larger.work, 0, sizeof(larger.work));
	if (choose(&larger, resume, candidates, &map))
		fail_clear();
	*ret = *process->choices;
	for (unsigned int i = 0; map && i < map->nr_pairs; i++)
		if (topology_find_minor(process->saved, map->pairs[i].saved_minor) >= 0)
			match_remember(ret, &map->pairs[i]);
	return true;
}

/* The first attempt that finds a map counts, and of several that do not, the words of the last one. */
int match_choose(const struct match_process *process, struct match_candidates *candidates, struct match_map **ret)
{
	struct match_process attempt = *process;
	struct match_choices of_larger;
	bool wants_resume = false;
	int err = 0;

	/* Where ids are kept, a preference must not lead to other ones: the restore would be refused. */
	for (unsigned int i = 0; !process->options->keeps_ids && i < process->choices->nr; i++)
		wants_resume |= process->choices->list[i].work.vram_later != 0;
	for (int resume = wants_resume; resume >= 0; resume--)
		for (int beside = 1; beside >= 0; beside--) {
			if (beside && !choose_for_larger(process, resume, candidates, &of_larger))
				continue;
			attempt.choices = beside ? &of_larger : process->choices;
			if (err)
				fail_clear();
			err = choose(&attempt, resume, candidates, ret);
			if (!err)
				return 0;
		}
	return err;
}
