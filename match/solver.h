/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two halves of the search share: match/assign.c tries, match/bound.c
 * tells what can still be reached.
 */
#ifndef MATCH_SOLVER_H
#define MATCH_SOLVER_H

#include "match/problem.h"

/* What is known at one depth of the search. The arrays lie in one block, so that a step down is one copy. */
struct state {
	uint64_t *domain;     /* sets */
	int64_t *price_thing; /* dual values of the matching, in lost weight */
	int64_t *price_place; /* <= 0 */
	int32_t *place;	      /* of each thing in the matching, -1: none */
	int32_t *owner;	      /* thing of each place, -1: none */
};

struct solver {
	const struct problem *p;
	bool weighted;	 /* false: any solution will do */
	bool guided;	 /* try the matching's place first */
	bool first_only; /* stop at the first solution */
	bool aborted;
	uint64_t steps;
	uint64_t limit;
	int64_t max_weight;
	int64_t need; /* total weight that a solution must have */
	bool found;
	int32_t placed[PROBLEM_MAX]; /* by the search, -1: not yet */
	int32_t solution[PROBLEM_MAX];
	struct symmetry symmetry;
	unsigned int used[PROBLEM_MAX]; /* places of each class that the search has given away */
	/* Things that belong together form a group around a centre, see share_weights(). */
	uint16_t centre_of[PROBLEM_MAX];      /* of each thing; its own when it is one */
	unsigned int group_size[PROBLEM_MAX]; /* of each centre */
	int64_t *shared;		      /* [thing][place] */
	size_t state_size;
	char *states; /* nr_things + 2 of them */
	/* Scratch of augment() */
	int64_t dist[PROBLEM_MAX];
	int32_t from[PROBLEM_MAX];
	bool scanned[PROBLEM_MAX];
};

struct state state_at(const struct solver *s, unsigned int depth);
void state_copy(const struct solver *s, unsigned int to, unsigned int from);

static inline uint64_t *domain_of(const struct solver *s, const struct state *st, unsigned int thing)
{
	return st->domain + (size_t)thing * s->p->nr_words;
}

/* Puts the thing there and takes away what that makes impossible. False: some thing has no place left. */
bool propagate(struct solver *s, struct state *st, unsigned int thing, unsigned int place);

/* Starts a matching anew: nothing is matched, all prices are 0. */
void matching_reset(const struct solver *s, struct state *st);

/*
 * Mends the matching after domains have shrunk. False: it cannot be mended, and
 * s->scanned is a set of places that is too small for its owners and the first
 * thing without a place.
 */
bool matching_repair(struct solver *s, struct state *st);

/* May a solution below this state be as heavy as s->need? */
bool weight_suffices(const struct solver *s, const struct state *st);

/* The same if the thing is there, going by its price alone: cheap, nothing is changed. */
bool price_suffices(const struct solver *s, const struct state *st, unsigned int thing, unsigned int place);

/* Finds the groups and fills s->shared and s->max_weight. Uses state 1; removes places from the domains of state 0. */
void share_weights(struct solver *s);

#endif
