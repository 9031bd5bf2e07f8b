/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Assignment: puts n things on m places, each on its own.
 *
 * Every thing has a set of places that would do, some pairs of things restrict
 * each other, and every (thing, place) has a weight. Found is, of all
 * assignments that keep all of it, the one with the largest total weight, and
 * of these the lexicographically smallest (place of thing 0 first). Things are
 * saved GPUs and places local ones, but nothing here knows that.
 */
#ifndef MATCH_ASSIGN_H
#define MATCH_ASSIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASSIGN_MAX	 256  /* things, and places */
#define ASSIGN_MAX_KINDS 1024 /* different restrictions */

/* Words of a set of places. */
#define ASSIGN_WORDS(m) (((m) + 63) / 64)

/*
 * Restrictions are numbered from 1. kind[i * n + j] is the one that holds
 * between things i and j as seen from i: with i on place v, j may be on the
 * places of row[kind][v]. kind[j * n + i] is the same restriction as seen from
 * j, so that its rows are the transposed ones; both must be 0 or none.
 */
struct assign_problem {
	unsigned int n; /* things, <= m */
	unsigned int m;
	unsigned int n_kinds; /* including the unused 0 */
	uint64_t *domain;     /* n sets */
	uint16_t *kind;	      /* n * n */
	uint64_t *row;	      /* n_kinds * m sets */
	uint32_t *weight;     /* n * m, each at most 2^24 */
};

struct assign_result {
	int place[ASSIGN_MAX]; /* of each thing */
	bool best;	       /* false: the work limit ended the search for a better one */
	uint64_t work;	       /* steps done, for benchmarks */
	/* On -ENODEV: */
	bool crowded;		     /* more things than places, whatever the restrictions: */
	bool in_crowd[ASSIGN_MAX];   /* these things ... */
	bool crowd_room[ASSIGN_MAX]; /* ... have only these places */
	int partial[ASSIGN_MAX];     /* else: an attempt that came far (-1: not placed) */
	int stuck;		     /* the thing that it could not place, -1: none known */
};

/* Allocates the arrays, zeroed, for n_kinds kinds. -ENOMEM; -E2BIG when a bound above is passed. */
int assign_problem_init(struct assign_problem *p, unsigned int n, unsigned int m, unsigned int n_kinds);
void assign_problem_done(struct assign_problem *p);

static inline uint64_t *assign_domain(const struct assign_problem *p, unsigned int thing)
{
	return p->domain + (size_t)thing * ASSIGN_WORDS(p->m);
}

static inline uint64_t *assign_row(const struct assign_problem *p, unsigned int kind, unsigned int place)
{
	return p->row + ((size_t)kind * p->m + place) * ASSIGN_WORDS(p->m);
}

static inline bool assign_set_has(const uint64_t *set, unsigned int place)
{
	return set[place / 64] >> (place % 64) & 1;
}

static inline void assign_set_add(uint64_t *set, unsigned int place)
{
	set[place / 64] |= 1ULL << (place % 64);
}

/*
 * Solves the problem, deterministically, in a bounded number of steps.
 * work_limit: 0 for the built-in limit.
 *
 * Returns 0; -ENODEV when no assignment exists (proved; *ret says what is
 * known of the reason); -E2BIG when the limit was reached before one was found
 * or excluded; -ENOMEM. Silent. *ret is written on 0 and -ENODEV.
 */
int assign_solve(const struct assign_problem *p, uint64_t work_limit, struct assign_result *ret);

#endif
