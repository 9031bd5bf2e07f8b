/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Match: which saved GPU becomes which local GPU.
 *
 * Rules
 *   One GPU: its properties are equal, or at least as good (match/rules.c has
 *   the table). A property that one side does not have is not compared.
 *   Host link: in each direction as good as it was. XGMI serves for all, PCIe
 *   for PCIe and older buses.
 *   Two GPUs, in each direction: XGMI needs XGMI of at least the same
 *   bandwidth; PCIe peer access needs PCIe peer access or XGMI. A link must
 *   have the atomic operations that the saved link had.
 *   NUMA: GPUs of one NUMA node go to one NUMA node.
 *   Links to other nodes do not matter.
 *   Pairs that the user names are checked like all others.
 *
 * The choice
 *   Idle local GPUs alone are tried first, then all. The saved GPU with the
 *   fewest possible local ones chooses first; it tries idle ones first, then the
 *   one with its gpu id, its PCI address, its NUMA node, the lowest node number.
 *   The first map that keeps the rules is taken: the GPUs of before, where all
 *   are there and idle, but not always the map with the most wishes fulfilled.
 *   The search has a limit, in steps, that ordinary machines do not come near:
 *   beyond it the result is "undecided".
 */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"

#define MATCH_REPORT_LINES   40
#define MATCH_REPORT_COLUMNS 900 /* a line of the log has room for more */

/* Rules that the user can switch off. */
enum match_check {
	MATCH_CHECK_FW_VERSION,
	MATCH_CHECK_SDMA_FW_VERSION,
	MATCH_CHECK_CACHES_COUNT,
	MATCH_CHECK_NUM_GWS,
	MATCH_CHECK_VRAM_SIZE,
	MATCH_CHECK_CAPABILITY,
	MATCH_CHECK_NUMA,
	MATCH_CHECK_TOPOLOGY,
	MATCH_NR_CHECKS,
	MATCH_CHECK_ALWAYS = MATCH_NR_CHECKS,
};

/* Zeroed: all rules hold, all local GPUs may be used, none is busy. Owns nothing. */
struct match_options {
	bool relaxed[MATCH_NR_CHECKS];
	const struct device_map_entry *pairs; /* that the user names */
	unsigned int nr_pairs;
	const char *const *unusable; /* per local node: why it may not be used, or NULL; NULL: all may */
	const bool *busy;	     /* per local node: others use it; NULL: all are idle */
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

/* Why there is no map: lines for people, without line ends. */
struct match_report {
	uint64_t steps; /* of the last search, also when there is a map */
	bool cut;	/* there was more than fits */
	unsigned int nr_lines;
	char line[MATCH_REPORT_LINES][MATCH_REPORT_COLUMNS];
};

/*
 * Finds the map from the GPUs of "saved" (nodes with a gpu id) to the GPUs of
 * "local".
 *
 * Returns 0 and a map that the caller frees with match_map_free(); without GPUs
 * in "saved" it is empty. Otherwise *report says why: -ENODEV: no map keeps the
 * rules; -EINVAL: the user names a GPU that is not there; -E2BIG: undecided
 * within the limit; -ENOMEM. Logs nothing.
 */
int match_devices(const struct topology *saved, const struct topology *local, const struct match_options *options,
		  struct match_map **ret, struct match_report *report);

/* Name of the setting that switches a check off, e.g. "KFD_NUMA_CHECK". */
const char *match_check_name(enum match_check check);

/* Accepts NULL. */
void match_map_free(struct match_map *map);

/* Writes the lines to the log, as errors. */
void match_report_log(const struct match_report *report);

#endif
