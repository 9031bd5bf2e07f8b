/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the matcher share: the assignment problem, of things that go to places, each to one of its own; the
 * rules, which pose it; and the report.
 *
 * "Thing" is the n-th saved GPU, "place" the n-th local one that may be used. Each thing has a set of places that would do
 * (its domain), and some pairs of things restrict each other. A solution keeps all restrictions. Of a thing's places those
 * that it wishes are tried first.
 */
#ifndef MATCH_INTERNAL_H
#define MATCH_INTERNAL_H

#include "amdgpu_plugin_util.h"
#include "match/match.h"

#define PROBLEM_MAX	  256 /* things, and places */
#define PROBLEM_MAX_KINDS 256 /* different restrictions */
#define PROBLEM_WISHES	  4

/* ---- sets of places ---- */

#define SET_WORDS (PROBLEM_MAX / 64)

struct place_set {
	uint64_t word[SET_WORDS];
};

static inline bool set_has(const struct place_set *set, unsigned int place)
{
	return set->word[place / 64] >> (place % 64) & 1;
}

static inline void set_add(struct place_set *set, unsigned int place)
{
	set->word[place / 64] |= 1ULL << (place % 64);
}

static inline void set_remove(struct place_set *set, unsigned int place)
{
	set->word[place / 64] &= ~(1ULL << (place % 64));
}

/* Removes what is not in @others. */
static inline void set_keep(struct place_set *set, const struct place_set *others)
{
	for (unsigned int w = 0; w < SET_WORDS; w++)
		set->word[w] &= others->word[w];
}

unsigned int set_count(const struct place_set *set);

/* The lowest place of the set from "from" on, or -1. */
int set_next(const struct place_set *set, unsigned int from);

#define for_each_place(place_, set_) \
	for (int place_ = set_next(set_, 0); place_ >= 0; place_ = set_next(set_, (unsigned int)place_ + 1))

/* ---- the problem ---- */

/*
 * Restrictions are numbered from 1. kind[i][j] is the one between things i and
 * j as seen from i: with i on place v, j may be on the places of row[kind][v].
 * The kind from j to i is the same restriction seen from j: its rows are the
 * transposed ones. 0 is no restriction.
 */
struct problem {
	unsigned int nr_things;
	unsigned int nr_places;
	unsigned int nr_kinds; /* with the unused 0 */
	struct place_set domain[PROBLEM_MAX];		    /* of each thing */
	struct place_set wish[PROBLEM_WISHES][PROBLEM_MAX]; /* the better places of each thing, the first wish first */
	uint8_t kind[PROBLEM_MAX][PROBLEM_MAX];		    /* of two things */
	struct place_set row[PROBLEM_MAX_KINDS][PROBLEM_MAX]; /* of a kind and a place */
};

/* ---- the search ---- */

struct assignment {
	int place[PROBLEM_MAX]; /* of each thing */
	uint64_t steps;		/* done, also when there is no solution */
	/* On -ENODEV: */
	bool crowded;		      /* more things than places, whatever the restrictions: */
	bool in_crowd[PROBLEM_MAX];   /* these things ... */
	bool crowd_room[PROBLEM_MAX]; /* ... have only these places */
};

/*
 * Solves the problem. A step of the limit is a few nanoseconds; how many there
 * are depends on the problem alone.
 *
 * Returns 0; -ENODEV when there is no solution; -E2BIG when the limit came
 * before an answer; -ENOMEM. Silent. *ret is written except on -ENOMEM.
 */
int assign_solve(const struct problem *p, uint64_t limit, struct assignment *ret);

/*
 * Places that the problem does not tell apart form a class: any of them can
 * stand in for another. Classes of one group can be swapped as a whole.
 */
struct symmetry {
	unsigned int nr_classes;
	uint16_t class_of[PROBLEM_MAX]; /* of each place */
	uint16_t group_of[PROBLEM_MAX]; /* of each class */
};

/* Wishes tell no places apart: whether there is a solution does not depend on them. */
void symmetry_find(struct symmetry *ret, const struct problem *p);

/* ---- the rules (match/rules.c) ---- */

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
enum obstacle_kind { OBSTACLE_NONE, OBSTACLE_PROP, OBSTACLE_ROOM, OBSTACLE_HOST_LINK, OBSTACLE_PINNED };

struct obstacle {
	enum obstacle_kind kind;
	enum topology_prop prop; /* OBSTACLE_PROP */
	bool from_host;		 /* OBSTACLE_HOST_LINK: wanted and found are link ranks */
	uint64_t wanted; /* OBSTACLE_ROOM: bytes */
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

/* Fills in what binds things to each other, all zero before. 0, or -E2BIG: too many kinds of links. */
int rule_problem(const struct match *m, struct problem *p);

enum match_work { WORK_ANY, WORK_QUEUES, WORK_KINDS };

/*
 * Takes the busy local GPUs from the saved ones where such work is done and which have idle ones. Returns whether there
 * were any.
 */
bool rule_leave_busy(const struct match *m, enum match_work work, struct problem *p);

/* Fills in the domains and wishes: before, and anew after rule_leave_busy(). */
void rule_domains(const struct match *m, struct problem *p);

/* Fails with the reason why there is no map: -ENODEV. @problem: the one that has no solution. */
int report_refusal(const struct match *m, const struct problem *problem, const struct assignment *attempt);

#endif
