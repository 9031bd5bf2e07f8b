/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the matcher share: the rules as functions over one saved
 * and one local GPU (or two of each), and the problem that is built from them.
 *
 * "Thing" is the n-th saved GPU, "place" the m-th local one that may be used.
 */
#ifndef MATCH_INTERNAL_H
#define MATCH_INTERNAL_H

#include "match/assign.h"
#include "match/match.h"

/* How good a link is. A better one serves for a worse one. */
enum link_rank { LINK_NONE, LINK_PCIE, LINK_XGMI };

/* What one direction between two GPUs, or between a GPU and the host, has to offer. */
struct link_demand {
	enum link_rank rank;
	bool has_flags;
	uint32_t max_bandwidth; /* MB/s; 0: no demand */
	uint32_t flags;
};

struct match_problem {
	const struct topology *saved;
	const struct topology *local;
	const struct settings *settings;
	unsigned int n;
	unsigned int m;
	unsigned int n_not_candidates;			      /* local GPUs that may not be used */
	uint16_t saved_node[TOPOLOGY_MAX_NODES];	      /* thing -> index in saved->nodes[] */
	uint16_t local_node[TOPOLOGY_MAX_NODES];	      /* place -> index in local->nodes[] */
	int pinned[TOPOLOGY_MAX_NODES];			      /* place that KFD_DEVICE_MAP gives to a thing, or -1 */
	struct link_demand saved_host[2][TOPOLOGY_MAX_NODES]; /* link to the host, from the host; of each thing */
	struct link_demand local_host[2][TOPOLOGY_MAX_NODES]; /* of each place */
	bool links_relaxed;				      /* as if KFD_TOPOLOGY_CHECK were 0 */
	bool numa_relaxed;
};

/* Why a GPU does not do for another. */
enum obstacle_kind { OBSTACLE_NONE, OBSTACLE_PROP, OBSTACLE_HOST_LINK, OBSTACLE_PINNED };

struct obstacle {
	enum obstacle_kind kind;
	enum topology_prop prop; /* OBSTACLE_PROP */
	uint64_t wanted;
	uint64_t found;
	enum setting relaxed_by;
	bool from_host; /* OBSTACLE_HOST_LINK: which direction; wanted and found are link ranks */
};

static inline const struct topology_node *saved_gpu(const struct match_problem *mp, unsigned int thing)
{
	return mp->saved->nodes[mp->saved_node[thing]];
}

static inline const struct topology_node *local_gpu(const struct match_problem *mp, unsigned int place)
{
	return mp->local->nodes[mp->local_node[place]];
}

/* Fills in what the rules look up often; n, m and the node arrays are set. */
void rule_prepare(struct match_problem *mp);

/* Checks the rules that concern one GPU alone. Returns the first obstacle, of kind NONE when it fits. */
struct obstacle rule_gpu(const struct match_problem *mp, unsigned int thing, unsigned int place);

/* What the saved link from one thing to another demands; rank NONE: nothing, or not checked. */
struct link_demand rule_link_demand(const struct match_problem *mp, unsigned int from, unsigned int to);

/* Does this local link do? (Both ends are GPUs.) */
bool rule_link_serves(const struct topology_link *link, const struct link_demand *demand);

/* Must the two things come to one NUMA node? */
bool rule_numa_demand(const struct match_problem *mp, unsigned int a, unsigned int b);

/* Are the two places on one NUMA node? */
bool rule_numa_serves(const struct match_problem *mp, unsigned int a, unsigned int b);

/* Best link from one local GPU to another: its rank, and the largest bandwidth of that rank. */
struct link_demand local_link(const struct match_problem *mp, unsigned int from, unsigned int to);

/*
 * Builds the assignment problem of these rules; the caller ends it with
 * assign_problem_done(). -E2BIG: too many kinds of links; -ENOMEM.
 */
int match_build(const struct match_problem *mp, struct assign_problem *ret);

/* Explains why assign_solve() found no map. */
void match_explain(const struct match_problem *mp, const struct assign_result *result, struct match_report *report);

/* Adds one line, cut to the width of the report; lines beyond its length are counted. */
void report_line(struct match_report *report, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
