/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Match: which saved GPU becomes which local GPU.
 *
 * Rules
 *   Per GPU: the table of amdgpu_plugin_topology.c (equal, at least, equal in
 *   the bits that user space acts on). A property that either side does not
 *   have is not compared.
 *   Host link: as good as saved in each direction that was saved (XGMI serves
 *   for anything, PCIe for PCIe and older buses).
 *   Two GPUs, per direction: XGMI needs XGMI of at least the saved bandwidth;
 *   PCIe peer-to-peer needs a link that can do it, or XGMI. A link that lacks
 *   an atomic operation which the saved one had does not serve.
 *   NUMA: GPUs of one NUMA node come to one NUMA node.
 *   Links to other nodes of either machine play no part.
 *   KFD_DEVICE_MAP fixes some pairs; they are checked like any other.
 *
 * The choice
 *   Of all maps that keep the rules: the one in which most GPUs keep their
 *   gpu id; of these, the one in which most keep their PCI address; then most
 *   their NUMA node; then the first saved GPU gets the lowest node number,
 *   then the second, and so on. Found exactly and deterministically, with a
 *   limit on the work.
 */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"
#include "amdgpu_plugin_topology.h"

#define MATCH_REPORT_LINES   40
#define MATCH_REPORT_COLUMNS 160

struct match_pair {
	unsigned int saved;	/* index in saved->nodes[] */
	unsigned int local;	/* index in local->nodes[] */
	uint32_t user_gpu_id;	/* how the process calls the GPU */
	uint32_t actual_gpu_id; /* how this machine calls it */
	uint32_t saved_minor;	/* render minors */
	uint32_t local_minor;
};

struct match_map {
	bool nearest; /* false: valid, but the work limit ended the search for a nearer one */
	unsigned int n;
	struct match_pair pairs[]; /* in the order of the saved nodes */
};

/* Index in nodes[] of the GPU; -ENODEV: there is none; -EEXIST: several have this name. */
int topology_find_ref(const struct topology *t, const struct device_ref *ref);

/* Why there is no map: lines for people, without line ends. */
struct match_report {
	unsigned int n_lines;
	char line[MATCH_REPORT_LINES][MATCH_REPORT_COLUMNS];
};

/*
 * Finds the map from the GPUs of "saved" (nodes with a gpu id) to the GPUs of
 * "local".
 *
 * candidates	one flag per local node: may this GPU be used? NULL: all may.
 *		Nodes that are no GPUs are ignored.
 *
 * Returns 0 and a map that the caller frees with match_map_free(); without GPUs
 * in "saved" it is empty. Otherwise *report says what is in the way: -ENODEV:
 * no map keeps the rules; -EINVAL: KFD_DEVICE_MAP names something that is not
 * there; -E2BIG: undecided within the limits; -ENOMEM. Nothing is logged.
 */
int match_devices(const struct topology *saved, const struct topology *local, const bool *candidates,
		  const struct settings *settings, struct match_map **ret, struct match_report *report);

/* Accepts NULL. */
void match_map_free(struct match_map *map);

static inline void match_map_cleanup(struct match_map **map)
{
	match_map_free(*map);
}
#define _cleanup_match_map_ __attribute__((cleanup(match_map_cleanup)))

/* The pair of a GPU as the process calls it, NULL when it is not in the map. */
const struct match_pair *match_by_user_gpu_id(const struct match_map *map, uint32_t user_gpu_id);
const struct match_pair *match_by_saved_minor(const struct match_map *map, uint32_t saved_minor);

/* Writes the lines to the log, as errors. */
void match_report_log(const struct match_report *report);

#endif
