/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the assignment search share: places that cannot be told
 * apart, remainders that are known to fail, and the filter that thins out the
 * domains before the search.
 */
#ifndef MATCH_ASSIGN_INTERNAL_H
#define MATCH_ASSIGN_INTERNAL_H

#include "match/assign.h"

#define for_each_place(place_, set_, words_)           \
	for (unsigned int w_ = 0; w_ < (words_); w_++) \
		for (uint64_t left_ = (set_)[w_];      \
		     left_ && ((place_) = w_ * 64 + (unsigned int)__builtin_ctzll(left_), true); left_ &= left_ - 1)

static inline bool assign_set_empty(const uint64_t *set, unsigned int words)
{
	uint64_t any = 0;

	for (unsigned int w = 0; w < words; w++)
		any |= set[w];
	return !any;
}

static inline void assign_set_remove(uint64_t *set, unsigned int place)
{
	set[place / 64] &= ~(1ULL << (place % 64));
}

struct symmetry;

/*
 * Finds the classes of interchangeable places for these domains (n sets). With
 * "weighted", places of different weight are different. NULL: out of memory.
 */
struct symmetry *symmetry_new(const struct assign_problem *p, const uint64_t *domain, bool weighted);

/* Accepts NULL. */
void symmetry_free(struct symmetry *sym);

/* Class of a place. Two free places of one class can always stand in for each other. */
unsigned int symmetry_class(const struct symmetry *sym, unsigned int place);

/*
 * Did a remainder fail that is this one up to the naming of places? The
 * remainder: the things that are not placed (placed[thing] < 0) and their
 * domains; "need" is the weight that they have to bring.
 */
bool symmetry_failed_before(struct symmetry *sym, const uint64_t *domain, const int32_t *placed, int64_t need);

/* Remembers that a remainder was searched and does not bring "need". Forgets it when memory is short. */
void symmetry_note_failure(struct symmetry *sym, const uint64_t *domain, const int32_t *placed, int64_t need);

/*
 * A bound on the weight: no assignment with these domains (n sets, placed things
 * with the one place they have) has a larger total weight. The domains given to
 * _new are those at the root of the search. NULL: out of memory.
 */
struct group_bound;

struct group_bound *group_bound_new(const struct assign_problem *p, const uint64_t *domain);
void group_bound_free(struct group_bound *gb);
int64_t group_bound_get(const struct group_bound *gb, const uint64_t *domain, const int32_t *placed);

/* Is the thing in a group of several, of which none is placed? */
bool group_untouched(const struct group_bound *gb, const int32_t *placed, unsigned int thing);

/*
 * Removes from the domains (n sets) each place on which a thing would leave
 * those around it without a place of their own. Adds the steps done to *work
 * and stops early, with less removed, at the limit.
 *
 * Returns 0; -ENODEV when a domain became empty (*ret_thing says whose); -ENOMEM.
 */
int assign_filter(const struct assign_problem *p, uint64_t *domain, const struct symmetry *sym, uint64_t *work,
		  uint64_t limit, int *ret_thing);

#endif
