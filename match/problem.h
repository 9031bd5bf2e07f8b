/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The assignment problem: things go to places, each to one of its own.
 *
 * Each thing has a set of places that would do (its domain), and some pairs of
 * things restrict each other. A solution keeps all restrictions. Of a thing's
 * places those that it wishes are tried first. Things are saved GPUs and places
 * local ones; nothing here knows that.
 */
#ifndef MATCH_PROBLEM_H
#define MATCH_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amdgpu_plugin_util.h"

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
	struct place_set (*row)[PROBLEM_MAX];		    /* of a kind and a place */
};

/* Of so many, within the bounds above, and with nothing else set. NULL when memory is short. */
struct problem *problem_new(unsigned int nr_things, unsigned int nr_places, unsigned int nr_kinds);
/* Accepts NULL. */
void problem_free(struct problem *p);

static inline void cleanup_problem(struct problem **p)
{
	problem_free(*p);
}
#define _cleanup_problem_ _cleanup_(cleanup_problem)

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

#endif
