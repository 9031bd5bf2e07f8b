// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: backtracking over the thing with the fewest places left, its best place first.
 *
 * Each step removes from the other things' places what has become impossible. Places that cannot be told apart
 * (match/symmetry.c) are tried once: machines are full of equal GPUs, and without this some ordinary machines would stay
 * undecided. The first solution is taken: wishes are an order in which to try, and no sum to be proved largest.
 */
#include <limits.h>

#include "match/internal.h"

/* ---- sets ---- */

unsigned int set_count(const struct place_set *set)
{
	unsigned int count = 0;

	for (unsigned int w = 0; w < SET_WORDS; w++)
		count += (unsigned int)__builtin_popcountll(set->word[w]);
	return count;
}

int set_next(const struct place_set *set, unsigned int from)
{
	uint64_t left;

	for (unsigned int w = from / 64; w < SET_WORDS; w++) {
		left = w == from / 64 ? set->word[w] >> (from % 64) << (from % 64) : set->word[w];
		if (left)
			return (int)(w * 64) + __builtin_ctzll(left);
	}
	return -1;
}

/* ---- the search ---- */

struct search {
	const struct problem *p;
	uint64_t steps, limit;
	int place[PROBLEM_MAX]; /* of each thing, -1: not yet */
	struct symmetry symmetry;
	unsigned int used[PROBLEM_MAX];	      /* places of each class */
	struct place_set left[][PROBLEM_MAX]; /* of each thing, by depth */
};

/* The places that are left one step deeper, with @thing on @place. False: some thing has none. */
static bool narrow(struct search *s, unsigned int depth, unsigned int thing, unsigned int place)
{
	const struct problem *p = s->p;

	for (unsigned int j = 0; j < p->nr_things; j++) {
		struct place_set *left = &s->left[depth + 1][j];

		if (s->place[j] >= 0)
			continue;
		*left = s->left[depth][j];
		set_remove(left, place);
		if (p->kind[thing][j])
			set_keep(left, &p->row[p->kind[thing][j]][place]);
		if (set_next(left, 0) < 0)
			return false;
	}
	return true;
}

/* The thing without a place that has the fewest left; -1: all have one. */
static int most_restricted(const struct search *s, unsigned int depth)
{
	unsigned int fewest = UINT_MAX;
	int found = -1;

	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		unsigned int nr = s->place[i] < 0 ? set_count(&s->left[depth][i]) : UINT_MAX;

		if (nr < fewest) {
			fewest = nr;
			found = (int)i;
		}
	}
	return found;
}

/* Takes the best place out of @set, of equal ones the lowest; -1: it is empty. */
static int take_best(const struct problem *p, int thing, struct place_set *set)
{
	struct place_set best = *set;
	int place;

	for (unsigned int i = 0; i < PROBLEM_WISHES; i++) {
		struct place_set better = best;

		set_keep(&better, &p->wish[i][thing]);
		if (set_next(&better, 0) >= 0)
			best = better;
	}
	place = set_next(&best, 0);
	if (place >= 0)
		set_remove(set, (unsigned int)place);
	return place;
}

/* Places with the same number lead to the same: those of one class, and of untouched classes of one group. */
static unsigned int outlook(const struct search *s, int place)
{
	unsigned int class = s->symmetry.class_of[place];

	return s->used[class] ? class : s->symmetry.nr_classes + s->symmetry.group_of[class];
}

static bool descend(struct search *s, unsigned int depth);

static bool try_place(struct search *s, unsigned int depth, unsigned int thing, int place)
{
	unsigned int *used = &s->used[s->symmetry.class_of[place]];

	s->steps += s->p->nr_things;
	s->place[thing] = place;
	++*used;
	if (narrow(s, depth, thing, (unsigned int)place) && descend(s, depth + 1))
		return true;
	--*used;
	s->place[thing] = -1;
	return false;
}

/* True: all things have a place. */
static bool descend(struct search *s, unsigned int depth)
{
	bool failed[2 * PROBLEM_MAX] = { false };
	int thing = most_restricted(s, depth), place;
	struct place_set left;

	if (thing < 0)
		return true;
	left = s->left[depth][thing];
	while (s->steps <= s->limit && (place = take_best(s->p, thing, &left)) >= 0) {
		unsigned int seen = outlook(s, place);

		if (!failed[seen] && try_place(s, depth, (unsigned int)thing, place))
			return true;
		failed[seen] = true;
	}
	return false;
}

/* ---- more things than places ---- */

/* Gives @thing a place, moving those that have one (Kuhn). False: those on the places @seen are too many for them. */
static bool augment(const struct problem *p, unsigned int thing, int *owner, bool *seen)
{
	for_each_place (place, &p->domain[thing]) {
		if (seen[place])
			continue;
		seen[place] = true;
		if (owner[place] < 0 || augment(p, (unsigned int)owner[place], owner, seen)) {
			owner[place] = (int)thing;
			return true;
		}
	}
	return false;
}

/* Whether the things could have a place each, whatever binds them to each other. */
static bool has_room(const struct problem *p, struct assignment *ret)
{
	int owner[PROBLEM_MAX];

	memset(owner, -1, sizeof(owner));
	for (unsigned int i = 0; i < p->nr_things; i++) {
		memset(ret->crowd_room, 0, sizeof(ret->crowd_room));
		if (augment(p, i, owner, ret->crowd_room))
			continue;
		ret->crowded = ret->in_crowd[i] = true;
		for (unsigned int place = 0; place < p->nr_places; place++)
			if (ret->crowd_room[place])
				ret->in_crowd[owner[place]] = true;
		return false;
	}
	return true;
}

int assign_solve(const struct problem *p, uint64_t limit, struct assignment *ret)
{
	_cleanup_free_ struct search *s = malloc(sizeof(*s) + (p->nr_things + 1) * sizeof(s->left[0]));
	bool found;

	if (!s)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	if (!has_room(p, ret))
		return -ENODEV;
	*s = (struct search){ .p = p, .limit = limit };
	memcpy(s->left[0], p->domain, p->nr_things * sizeof(p->domain[0]));
	memset(s->place, -1, sizeof(s->place));
	symmetry_find(&s->symmetry, p);
	found = descend(s, 0);
	memcpy(ret->place, s->place, sizeof(ret->place));
	ret->steps = s->steps;
	if (found)
		return 0;
	return s->steps > limit ? -E2BIG : -ENODEV;
}
