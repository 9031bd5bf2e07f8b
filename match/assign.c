// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: backtracking over the thing with the fewest places left, its best place first.
 *
 * Each step removes from the other things' places what has become impossible. Places that cannot be told apart
 * (match/symmetry.c) are tried once: machines are full of equal GPUs, and without this some ordinary machines would stay
 * undecided. The first solution is taken, so that weights are an order and not a sum to be proved largest.
 */
#include <limits.h>

#include "match/problem.h"
#include "amdgpu_plugin_util.h"

/* ---- problems and sets ---- */

int problem_init(struct problem *p, unsigned int nr_things, unsigned int nr_places, unsigned int nr_kinds)
{
	size_t words = (nr_places + 63) / 64;

	memset(p, 0, sizeof(*p));
	if (nr_things > PROBLEM_MAX || nr_places > PROBLEM_MAX || nr_kinds > PROBLEM_MAX_KINDS)
		return -E2BIG;
	p->nr_things = nr_things;
	p->nr_places = nr_places;
	p->nr_words = (unsigned int)words;
	p->nr_kinds = nr_kinds;
	/* One more than needed, so that NULL always means out of memory. */
	p->domain = calloc(nr_things * words + 1, sizeof(*p->domain));
	p->kind = calloc((size_t)nr_things * nr_things + 1, sizeof(*p->kind));
	p->row = calloc((size_t)nr_kinds * nr_places * words + 1, sizeof(*p->row));
	p->weight = calloc((size_t)nr_things * nr_places + 1, sizeof(*p->weight));
	if (p->domain && p->kind && p->row && p->weight)
		return 0;
	problem_done(p);
	return -ENOMEM;
}

void problem_done(struct problem *p)
{
	free(p->domain);
	free(p->kind);
	free(p->row);
	free(p->weight);
	memset(p, 0, sizeof(*p));
}

unsigned int set_count(const uint64_t *set, unsigned int nr_words)
{
	unsigned int count = 0;

	for (unsigned int w = 0; w < nr_words; w++)
		count += (unsigned int)__builtin_popcountll(set[w]);
	return count;
}

int set_next(const uint64_t *set, unsigned int nr_words, unsigned int from)
{
	uint64_t left;

	for (unsigned int w = from / 64; w < nr_words; w++) {
		left = w == from / 64 ? set[w] >> (from % 64) << (from % 64) : set[w];
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
	unsigned int used[PROBLEM_MAX]; /* places of each class */
	uint64_t *sets;			/* [depth][thing]: places that are left */
};

static uint64_t *set_at(const struct search *s, unsigned int depth, unsigned int thing)
{
	return s->sets + ((size_t)depth * s->p->nr_things + thing) * s->p->nr_words;
}

/* The places that are left one step deeper, with @thing on @place. False: some thing has none. */
static bool narrow(struct search *s, unsigned int depth, unsigned int thing, unsigned int place)
{
	const struct problem *p = s->p;

	for (unsigned int j = 0; j < p->nr_things; j++) {
		uint64_t *to = set_at(s, depth + 1, j), any = 0;
		unsigned int kind = *problem_kind(p, thing, j);

		if (s->place[j] >= 0)
			continue;
		memcpy(to, set_at(s, depth, j), sizeof(*to) * p->nr_words);
		set_remove(to, place);
		for (unsigned int w = 0; w < p->nr_words; w++)
			any |= to[w] &= kind ? problem_row(p, kind, place)[w] : UINT64_MAX;
		if (!any)
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
		unsigned int nr = s->place[i] < 0 ? set_count(set_at(s, depth, i), s->p->nr_words) : UINT_MAX;

		if (nr < fewest) {
			fewest = nr;
			found = (int)i;
		}
	}
	return found;
}

/* Takes the heaviest place out of @set, of equal ones the lowest; -1: it is empty. */
static int take_best(const struct problem *p, unsigned int thing, uint64_t *set)
{
	uint32_t most = 0;
	int best = -1;

	for_each_place (place, set, p->nr_words) {
		uint32_t weight = *problem_weight(p, thing, (unsigned int)place);

		if (best < 0 || weight > most) {
			best = place;
			most = weight;
		}
	}
	if (best >= 0)
		set_remove(set, (unsigned int)best);
	return best;
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

	s->steps += (uint64_t)s->p->nr_things * s->p->nr_words;
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
	uint64_t left[PROBLEM_MAX_WORDS];
	int thing = most_restricted(s, depth), place;

	if (thing < 0)
		return true;
	memcpy(left, set_at(s, depth, (unsigned int)thing), sizeof(*left) * s->p->nr_words);
	while (s->steps <= s->limit && (place = take_best(s->p, (unsigned int)thing, left)) >= 0) {
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
	for_each_place (place, problem_domain(p, thing), p->nr_words) {
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
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	_cleanup_free_ uint64_t *sets = calloc((size_t)(p->nr_things + 1) * p->nr_things * p->nr_words + 1, sizeof(*sets));
	bool found;

	if (!s || !sets)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	if (!has_room(p, ret))
		return -ENODEV;
	*s = (struct search){ .p = p, .limit = limit, .sets = sets };
	memcpy(sets, p->domain, sizeof(*sets) * p->nr_things * p->nr_words);
	memset(s->place, -1, sizeof(s->place));
	symmetry_find(&s->symmetry, p);
	found = descend(s, 0);
	memcpy(ret->place, s->place, sizeof(ret->place));
	ret->steps = s->steps;
	if (found)
		return 0;
	return s->steps > limit ? -E2BIG : -ENODEV;
}
