/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Match: which saved GPU becomes which local GPU.
 *
 * Rules
 *   One GPU: its properties are equal, or at least as good (match/rules.c has the table). A property that one side does
 *   not have is not compared.
 *   Host link: in each direction as good as it was. XGMI serves for all, PCIe for PCIe and older buses.
 *   Two GPUs, in each direction: XGMI needs XGMI of at least the same bandwidth; PCIe peer access needs PCIe peer access
 *   or XGMI. A link must have the atomic operations that the saved link had.
 *   NUMA: GPUs of one NUMA node go to one NUMA node.
 *   Room: a GPU has as much free VRAM as is needed there, a device as much as is needed on its partitions together.
 *   Links to other nodes do not matter. Pairs that the user names are checked like all others.
 *
 * The choice
 *   A process sees GPUs that it never works on. Where it works, only idle local ones are tried at first, then only where
 *   it has queues, then all; a saved GPU that fits no idle one may have any. The saved GPU with the fewest possible local
 *   ones chooses first, of several the one with the best. That is an idle one (where it works), then the one with its gpu
 *   id, its PCI address, its NUMA node, the first in the machine's order.
 *   The first map that keeps the rules is taken: the GPUs of before, where all are there and idle, but not always the
 *   best one. The search has a limit, in steps, that ordinary machines do not come near: beyond it the result is
 *   "undecided".
 *   Of processes that come back suspended, idle GPUs with room for what a resume allocates are tried before all that,
 *   unless ids are kept.
 */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"

/* Rules that the user can switch off. */
enum match_check {
	MATCH_CHECK_FW_VERSION,
	MATCH_CHECK_SDMA_FW_VERSION,
	MATCH_CHECK_CACHES_COUNT,
	MATCH_CHECK_NUM_GWS,
	MATCH_CHECK_VRAM_SIZE,
	MATCH_CHECK_CAPABILITY,
	MATCH_CHECK_NUMA,
	MATCH_NR_CHECKS,
	MATCH_CHECK_ALWAYS = MATCH_NR_CHECKS,
};

/* Zeroed: all rules hold, all local GPUs may be used, none is busy or full. Owns nothing. */
struct match_options {
	bool relaxed[MATCH_NR_CHECKS];
	const struct device_map_entry *pairs; /* that the user names */
	unsigned int nr_pairs;
	unsigned int nr_followed;    /* of the pairs, the last ones: other processes have chosen them, not the user */
	const char *const *unusable; /* per local node: why it may not be used, or NULL; NULL: all may */
	const struct gpu_usage *usage; /* per local node: what others use of it; NULL: nothing */
	const struct gpu_work *work; /* per saved node: what is done there; NULL: the process works on all, room is not asked */
	bool keeps_ids;		     /* GPUs of the same ids come before idle ones */
};

struct match_pair {
	unsigned int saved;	/* index in saved->nodes[] */
	unsigned int local;	/* index in local->nodes[] */
	uint32_t user_gpu_id;	/* the process's name for the GPU */
	uint32_t actual_gpu_id; /* this machine's name for it */
	uint32_t saved_minor;	/* render minors */
	uint32_t local_minor;
};

struct match_map {
	unsigned int nr_pairs;
	struct match_pair pairs[]; /* in the order of the saved nodes */
};

/*
 * Finds the map from the GPUs of "saved" (nodes with a gpu id) to the GPUs of "local".
 *
 * Returns 0 and a map in heap memory of the caller; without GPUs in "saved" it is empty. -ENODEV: no map keeps the
 * rules; -EINVAL: the user names a GPU that is not there; -E2BIG: undecided within the limit; -ENOMEM.
 */
int match_devices(const struct topology *saved, const struct topology *local, const struct match_options *options,
		  struct match_map **ret);

/* ---- several processes, one after the other (match/choose.c) ---- */

/* A saved GPU, by its render minor at dump, since each process has gpu ids of its own. */
struct match_choice {
	uint32_t saved_minor;
	uint32_t local_gpu_id; /* that it has become; 0: none yet */
	struct gpu_work work;  /* of all processes together, as far as it is known */
};

/* {} to begin with. May be in shared memory. */
struct match_choices {
	bool keeps_ids; /* some process shares buffers and needs GPUs of the same ids */
	unsigned int nr;
	struct match_choice list[TOPOLOGY_MAX_NODES];
	bool is_named[TOPOLOGY_MAX_NODES]; /* by index of the user's pairs: some process has its saved GPU */
};

/* What a saved GPU has become, 0: nothing yet; the saved render minor that has become this local GPU, or -ENOENT. */
uint32_t match_choice_local(const struct match_choices *choices, uint32_t saved_minor);
int match_choice_saved(const struct match_choices *choices, uint32_t local_gpu_id);
/*
 * What a process works on, by index of saved->nodes[], and whether it needs GPUs of the same ids. For each, before the
 * first one chooses.
 */
void match_need(struct match_choices *choices, const struct topology *saved, const struct gpu_work *work, bool keeps_ids);
/* Which of the user's pairs name a GPU of this process. For each, before the first one chooses: the others ignore these pairs. */
void match_note_pairs(struct match_choices *choices, const struct topology *saved, const struct device_map_entry *pairs,
		      unsigned int nr);
/* A process has chosen. 0; -ENOSPC, without a message, when the table is full. */
int match_remember(struct match_choices *choices, const struct match_pair *pair);

/* What is known of the local GPUs, by index of machine->nodes[]. */
struct match_candidates {
	char reason[TOPOLOGY_MAX_NODES][160]; /* why one may not be used; "": it may */
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
};

/* Who wants GPUs. All of it is borrowed. */
struct match_process {
	const struct topology *saved;	/* its GPUs */
	const struct topology *largest; /* of the process that has most of them, if that is known */
	const struct topology *machine;
	const struct match_options *options; /* but for what follows from the candidates */
	const struct match_choices *choices; /* of the processes before it */
	struct gpu_work work[TOPOLOGY_MAX_NODES]; /* its own, by index of saved->nodes[]; of choices where that is more */
	/* Updates the usage of a GPU that has too little memory. NULL: it stays as it is. */
	void (*wait_for_room)(void *arg, unsigned int local, uint64_t needed);
	void *arg;
};

/*
 * As match_devices(), with the GPUs that the candidates allow. What turns out to be taken gets its reason there. A
 * process that comes before one with more GPUs chooses so that the rest of these have a map, too, where there is one.
 */
int match_choose(const struct match_process *process, struct match_candidates *candidates, struct match_map **ret);

/* Name of the setting that switches a check off, e.g. "KFD_NUMA_CHECK". */
const char *match_check_name(enum match_check check);

#endif
