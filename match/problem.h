/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The assignment problem: things go to places, each to one of its own.
 *
 * Each thing has a set of places that would do (its domain), and some pairs of
 * things restrict each other. A solution keeps all restrictions. Of a thing's
 * places the heavier ones are tried first. Things are saved GPUs and places
 * local ones; nothing here knows that.
 */
#ifndef MATCH_PROBLEM_H
#define MATCH_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBLEM_MAX	  256 /* things, and places */
#define PROBLEM_MAX_KINDS 256 /* different restrictions */
#define PROBLEM_MAX_WORDS (PROBLEM_MAX / 64)

/*
 * Restrictions are numbered from 1. kind[i * nr_things + j] is the one between
 * things i and j as seen from i: with i on place v, j may be on the places of
 * problem_row(kind, v). The kind from j to i is the same restriction seen from
 * j: its rows are the transposed ones. 0 is no restriction.
 */
struct problem {
	unsigned int nr_things;
	unsigned int nr_places;
	unsigned int nr_words; /* of a set of places */
	unsigned int nr_kinds; /* with the unused 0 */
	uint64_t *domain;      /* [thing]: sets */
	uint16_t *kind;	       /* [thing][thing] */
	uint64_t *row;	       /* [kind][place]: sets */
	uint32_t *weight;      /* [thing][place] */
};

/* Allocates the arrays, zeroed. -ENOMEM; -E2BIG when a bound above is passed. */
int problem_init(struct problem *p, unsigned int nr_things, unsigned int nr_places, unsigned int nr_kinds);
void problem_done(struct problem *p);

static inline uint64_t *problem_domain(const struct problem *p, unsigned int thing)
{
	return p->domain + (size_t)thing * p->nr_words;
}

static inline uint64_t *problem_row(const struct problem *p, unsigned int kind, unsigned int place)
{
	return p->row + ((size_t)kind * p->nr_places + place) * p->nr_words;
}

static inline uint16_t *problem_kind(const struct problem *p, unsigned int from, unsigned int to)
{
	return p->kind + (size_t)from * p->nr_things + to;
}

static inline uint32_t *problem_weight(const struct problem *p, unsigned int thing, unsigned int place)
{
	return p->weight + (size_t)thing * p->nr_places + place;
}

/* ---- sets of places: nr_words words ---- */

static inline bool set_has(const uint64_t *set, unsigned int place)
{
	return set[place / 64] >> (place % 64) & 1;
}

static inline void set_add(uint64_t *set, unsigned int place)
{
	set[place / 64] |= 1ULL << (place % 64);
}

static inline void set_remove(uint64_t *set, unsigned int place)
{
	set[place / 64] &= ~(1ULL << (place % 64));
}

unsigned int set_count(const uint64_t *set, unsigned int nr_words);

/* The lowest place of the set from "from" on, or -1. */
int set_next(const uint64_t *set, unsigned int nr_words, unsigned int from);

#define for_each_place(place_, set_, nr_words_)                      \
	for (int place_ = set_next(set_, nr_words_, 0); place_ >= 0; \
	     place_ = set_next(set_, nr_words_, (unsigned int)place_ + 1))

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

/* Weights tell no places apart: whether there is a solution does not depend on them. */
void symmetry_find(struct symmetry *ret, const struct problem *p);

#endif
