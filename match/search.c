// SPDX-License-Identifier: GPL-2.0-only
/*
 * Search: backtracking over the saved GPU with the fewest local ones left, its best one first.
 *
 * Each step takes from the others what has become impossible, and ends where these are too many for what is left. Of
 * local GPUs that look the same one is tried: machines are full of equal GPUs in equal hives, and without this some
 * ordinary machines would stay undecided. The first map is taken: worth is an order in which to try, and no sum to be
 * proved largest.
 */
#include <limits.h>

#include "match/internal.h"

struct search {
	const struct match *m;
	uint64_t steps, limit;
	int local[GPUS_MAX];		   /* that each saved GPU becomes; -1: not yet */
	unsigned int nr_left[GPUS_MAX];	   /* of each saved GPU: how many it may still become */
	uint16_t gone[GPUS_MAX][GPUS_MAX]; /* saved, local: the depth at which it became impossible; 0: it is not */
	uint64_t room[GPUS_MAX];	   /* bytes that are left for the partitions of a local GPU's device */
	uint16_t looks_as[GPUS_MAX]; /* of each local GPU: the first one that nothing tells from it */
};

static bool is_left(const struct search *s, unsigned int saved, unsigned int local)
{
	return s->m->worth[saved][local] && !s->gone[saved][local];
}

/* ---- local GPUs that look the same ---- */

/* Are a and b the same to all others? */
static bool look_the_same(const struct search *s, unsigned int a, unsigned int b)
{
	for (unsigned int i = 0; i < s->m->nr_saved; i++)
		if (!s->m->worth[i][a] != !s->m->worth[i][b])
			return false;
	if (s->room[a] != s->room[b] || !rule_same_pair(s->m, a, b, b, a))
		return false;
	for (unsigned int v = 0; v < s->m->nr_local; v++)
		if (v != a && v != b && !rule_same_pair(s->m, a, v, b, v))
			return false;
	return true;
}

/* ---- more saved GPUs than local ones ---- */

/* Gives @saved a local one, moving those that have one (Kuhn). False: those on @seen are too many for them. */
static bool augment(const struct search *s, unsigned int saved, int *owner, bool *seen)
{
	for (unsigned int v = 0; v < s->m->nr_local; v++) {
		if (seen[v] || !is_left(s, saved, v))
			continue;
		seen[v] = true;
		if (owner[v] < 0 || augment(s, (unsigned int)owner[v], owner, seen)) {
			owner[v] = (int)saved;
			return true;
		}
	}
	return false;
}

/* Whether those that have none are too many for what is left, whatever binds them to each other. */
static bool is_crowded(const struct search *s, struct crowd *ret)
{
	int owner[GPUS_MAX];

	memset(owner, -1, sizeof(owner));
	for (unsigned int i = 0; i < s->m->nr_saved; i++) {
		memset(ret, 0, sizeof(*ret));
		if (s->local[i] >= 0 || augment(s, i, owner, ret->local))
			continue;
		ret->is_there = ret->saved[i] = true;
		for (unsigned int v = 0; v < s->m->nr_local; v++)
			if (ret->local[v])
				ret->saved[owner[v]] = true;
		return true;
	}
	return false;
}

/* ---- the search ---- */

/* Takes from the others what is impossible with @saved on @local. False: one of them has none left. */
static bool narrow(struct search *s, unsigned int depth, unsigned int saved, unsigned int local)
{
	const struct match *m = s->m;

	for (unsigned int i = 0; i < m->nr_saved; i++) {
		for (unsigned int v = 0; s->local[i] < 0 && v < m->nr_local; v++) {
			if (!is_left(s, i, v) || (m->needed[i] <= s->room[v] && rule_pair(m, saved, i, local, v)))
				continue;
			s->gone[i][v] = (uint16_t)depth;
			s->nr_left[i]--;
		}
		if (s->local[i] < 0 && !s->nr_left[i])
			return false;
	}
	return true;
}

static void widen(struct search *s, unsigned int depth)
{
	for (unsigned int i = 0; i < s->m->nr_saved; i++)
		for (unsigned int v = 0; v < s->m->nr_local; v++)
			if (s->gone[i][v] == depth) {
				s->gone[i][v] = 0;
				s->nr_left[i]++;
			}
}

/* The best local GPU that has not been tried, of equal ones the first; -1: none. */
static int best_left(const struct search *s, unsigned int saved, const bool *tried)
{
	unsigned int most = 0;
	int best = -1;

	for (unsigned int v = 0; v < s->m->nr_local; v++)
		if (s->m->worth[saved][v] > most && !tried[v] && !s->gone[saved][v]) {
			most = s->m->worth[saved][v];
			best = (int)v;
		}
	return best;
}

/* The saved GPU with the fewest left, of equal ones that with the best; -1: all have one. */
static int most_restricted(const struct search *s)
{
	const bool tried[GPUS_MAX] = { false };
	unsigned int fewest = UINT_MAX, most = 0;
	int found = -1;

	for (unsigned int i = 0; i < s->m->nr_saved; i++) {
		unsigned int worth;

		if (s->local[i] >= 0 || s->nr_left[i] > fewest)
			continue;
		worth = s->m->worth[i][best_left(s, i, tried)];
		if (s->nr_left[i] == fewest && worth <= most)
			continue;
		fewest = s->nr_left[i];
		most = worth;
		found = (int)i;
	}
	return found;
}

/* @sign 1: @saved takes its place; -1: it gives it back. */
static void take(struct search *s, unsigned int saved, unsigned int local, int sign)
{
	s->local[saved] = sign > 0 ? (int)local : -1;
	for (unsigned int v = 0; v < s->m->nr_local; v++)
		if (s->room[v] != UINT64_MAX && rule_share_room(s->m, local, v))
			s->room[v] -= s->m->needed[saved] * (uint64_t)sign;
}

/* True: all have one. */
static bool descend(struct search *s, unsigned int depth)
{
	bool tried[GPUS_MAX] = { false };
	int saved = most_restricted(s), local;
	struct crowd crowd;

	if (saved < 0)
		return true;
	while (s->steps <= s->limit && (local = best_left(s, (unsigned int)saved, tried)) >= 0) {
		s->steps += s->m->nr_saved * s->m->nr_local;
		take(s, (unsigned int)saved, (unsigned int)local, 1);
		if (narrow(s, depth, (unsigned int)saved, (unsigned int)local) && !is_crowded(s, &crowd) &&
		    descend(s, depth + 1))
			return true;
		take(s, (unsigned int)saved, (unsigned int)local, -1);
		widen(s, depth);
		for (unsigned int v = 0; v < s->m->nr_local; v++)
			tried[v] |= s->looks_as[v] == s->looks_as[local];
	}
	return false;
}

int search_map(const struct match *m, uint64_t limit, int *local, struct crowd *crowd)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	bool found;

	if (!s)
		return -ENOMEM;
	s->m = m;
	s->limit = limit;
	memset(s->local, -1, sizeof(s->local));
	if (is_crowded(s, crowd))
		return -ENODEV;
	for (unsigned int v = 0; v < m->nr_local; v++) {
		s->room[v] = UINT64_MAX;
		for (unsigned int u = 0; u < m->nr_local; u++)
			if (u != v && rule_share_room(m, v, u))
				s->room[v] = m->room[v];
		for (unsigned int i = 0; i < m->nr_saved; i++)
			s->nr_left[i] += !!m->worth[i][v];
	}
	for (unsigned int v = 0; v < m->nr_local; v++) {
		unsigned int u = 0;

		while (u < v && (s->looks_as[u] != u || !look_the_same(s, u, v)))
			u++;
		s->looks_as[v] = (uint16_t)u;
	}
	found = descend(s, 1);
	memcpy(local, s->local, sizeof(s->local));
	return found ? 0 : s->steps > limit ? -E2BIG : -ENODEV;
}
