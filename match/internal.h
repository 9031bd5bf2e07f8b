/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the matcher share: the rules as functions over one saved
 * and one local GPU (or two of each), and the report.
 *
 * "Thing" is the n-th saved GPU, "place" the n-th local one that may be used.
 */
#ifndef MATCH_INTERNAL_H
#define MATCH_INTERNAL_H

#include "match/match.h"
#include "match/problem.h"

#define NO_ATOMICS (TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 | TOPOLOGY_LINK_FLAG_NO_ATOMICS_64)

/* How good a link is. A better one serves for a worse one. */
enum link_rank { LINK_NONE, LINK_PCIE, LINK_XGMI };

/* What one direction of a link offers, or has to offer. */
struct link_demand {
	enum link_rank rank;
	bool has_flags;
	uint32_t max_bandwidth; /* MB/s; 0: any will do */
	uint32_t flags;
};

struct match {
	const struct topology *saved;
	const struct topology *local;
	const struct match_options *options;
	unsigned int nr_things;
	unsigned int nr_places;
	uint16_t saved_node[TOPOLOGY_MAX_NODES];	      /* thing -> index in saved->nodes[] */
	uint16_t local_node[TOPOLOGY_MAX_NODES];	      /* place -> index in local->nodes[] */
	int pinned[TOPOLOGY_MAX_NODES];			      /* place that the pairs give to a thing, or -1 */
	bool follows[TOPOLOGY_MAX_NODES];		      /* another process has chosen it, not the user */
	struct link_demand saved_host[2][TOPOLOGY_MAX_NODES]; /* of each thing: link to, and from, the host */
	struct link_demand local_host[2][TOPOLOGY_MAX_NODES]; /* of each place */
};

/* Why a local GPU cannot stand in for a saved one. */
enum obstacle_kind { OBSTACLE_NONE, OBSTACLE_PROP, OBSTACLE_HOST_LINK, OBSTACLE_PINNED };

struct obstacle {
	enum obstacle_kind kind;
	enum topology_prop prop; /* OBSTACLE_PROP */
	bool from_host;		 /* OBSTACLE_HOST_LINK: wanted and found are link ranks */
	uint64_t wanted;
	uint64_t found;
	enum match_check check; /* that would let it pass when switched off */
};

static inline const struct topology_node *saved_gpu(const struct match *m, unsigned int thing)
{
	return m->saved->nodes[m->saved_node[thing]];
}

static inline const struct topology_node *local_gpu(const struct match *m, unsigned int place)
{
	return m->local->nodes[m->local_node[place]];
}

/* Fills in what the rules look up often; counts and nodes are set. */
void rule_prepare(struct match *m);

/* Must the local value be at least the saved one? */
bool rule_is_at_least(enum topology_prop prop);

/* The name of a bit in which two values of "capability" differ so that it matters, NULL when there is none. */
const char *rule_capability_difference(uint64_t a, uint64_t b);

/* The rules for one GPU alone. Returns the first obstacle, of kind NONE when it fits. */
struct obstacle rule_gpu(const struct match *m, unsigned int thing, unsigned int place);

/* What the saved link from one thing to another demands; rank NONE: nothing, or it is not checked. */
struct link_demand rule_link_demand(const struct match *m, unsigned int from, unsigned int to);

/* Must the two things go to one NUMA node? */
bool rule_numa_demand(const struct match *m, unsigned int a, unsigned int b);

/* Are the two places on one NUMA node? */
bool rule_numa_serves(const struct match *m, unsigned int a, unsigned int b);

/* Makes the problem that these rules pose; the caller frees it. -E2BIG: too many kinds of links; -ENOMEM. */
int rule_problem(const struct match *m, struct problem **ret);

/* Takes the busy local GPUs out of the problem, where a saved GPU has idle ones. Returns whether there were any. */
bool rule_leave_busy(const struct match *m, struct problem *p);

/* Fills in the domains and wishes: anew after rule_leave_busy(). */
void rule_domains(const struct match *m, struct problem *p);

/* Fails with the reason why there is no map: -ENODEV. @problem: the one that has no solution. */
int report_refusal(const struct match *m, const struct problem *problem, const struct assignment *attempt);

#endif
