// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bound: which weight can still be reached.
 *
 * A maximum-weight matching of things and places (Hungarian method) is kept from step to step; the value of its dual is
 * the bound. A matching knows that each place is used once, but not that things which belong together have to stay
 * together: so the weights that it works on are first shared out within groups.
 */
#include "match/solver.h"
#include "amdgpu_plugin_util.h"

#define FAR INT64_MAX

struct state state_at(const struct solver *s, unsigned int depth)
{
	const struct problem *p = s->p;
	struct state st;

	st.domain = (uint64_t *)(s->states + s->state_size * depth);
	st.price_thing = (int64_t *)(st.domain + (size_t)p->nr_things * p->nr_words);
	st.price_place = st.price_thing + p->nr_things;
	st.place = (int32_t *)(st.price_place + p->nr_places);
	st.owner = st.place + p->nr_things;
	return st;
}

void state_copy(const struct solver *s, unsigned int to, unsigned int from)
{
	memcpy(s->states + s->state_size * to, s->states + s->state_size * from, s->state_size);
}

/* Until the centre of a group is placed, its things have their share of what the whole group can have there. */
static int64_t weight_of(const struct solver *s, unsigned int thing, unsigned int place)
{
	if (!s->weighted)
		return 0;
	if (s->placed[s->centre_of[thing]] < 0)
		return s->shared[(size_t)thing * s->p->nr_places + place];
	return *problem_weight(s->p, thing, place);
}

/* ---- the matching ---- */

/* Lengthens the shortest paths over the places that this thing could take. */
static void relax(struct solver *s, const struct state *st, unsigned int thing, int64_t base)
{
	base += s->max_weight - st->price_thing[thing];
	for_each_place (place, domain_of(s, st, thing), s->p->nr_words) {
		int64_t dist = base - weight_of(s, thing, (unsigned int)place) - st->price_place[place];

		if (s->scanned[place] || dist >= s->dist[place])
			continue;
		s->dist[place] = dist;
		s->from[place] = (int32_t)thing;
	}
}

/* Of equally near places a free one comes first: it ends the path. */
static int nearest_unscanned(const struct solver *s, const struct state *st)
{
	int64_t best = FAR;
	int found = -1;

	for (unsigned int place = 0; place < s->p->nr_places; place++) {
		if (s->scanned[place] || s->dist[place] > best || s->dist[place] == FAR)
			continue;
		if (s->dist[place] == best && (st->owner[found] < 0 || st->owner[place] >= 0))
			continue;
		best = s->dist[place];
		found = (int)place;
	}
	return found;
}

/* Keeps the duals feasible, so that their sum stays a bound. */
static void update_prices(struct solver *s, struct state *st, unsigned int thing, int64_t length)
{
	for (unsigned int place = 0; place < s->p->nr_places; place++) {
		if (!s->scanned[place] || st->owner[place] < 0)
			continue;
		st->price_place[place] += s->dist[place] - length;
		st->price_thing[st->owner[place]] += length - s->dist[place];
	}
	st->price_thing[thing] += length;
}

/*
 * Gives an unmatched thing a place by the cheapest alternating path (Hungarian
 * method). When it returns false, s->scanned is a set of places that is too
 * small for its owners and this thing.
 */
static bool augment(struct solver *s, struct state *st, unsigned int thing)
{
	unsigned int at = thing;
	int64_t length = 0;
	int place;

	for (unsigned int i = 0; i < s->p->nr_places; i++) {
		s->dist[i] = FAR;
		s->scanned[i] = false;
	}
	for (;;) {
		relax(s, st, at, length);
		s->steps += s->p->nr_places;
		place = nearest_unscanned(s, st);
		if (place < 0)
			return false;
		s->scanned[place] = true;
		length = s->dist[place];
		if (st->owner[place] < 0)
			break;
		at = (unsigned int)st->owner[place];
	}
	update_prices(s, st, thing, length);
	do {
		int32_t next;

		at = (unsigned int)s->from[place];
		next = st->place[at];
		st->place[at] = place;
		st->owner[place] = (int32_t)at;
		place = next;
	} while (at != thing);
	return true;
}

void matching_reset(const struct solver *s, struct state *st)
{
	memset(st->price_thing, 0, sizeof(*st->price_thing) * s->p->nr_things);
	memset(st->price_place, 0, sizeof(*st->price_place) * s->p->nr_places);
	memset(st->place, -1, sizeof(*st->place) * s->p->nr_things);
	memset(st->owner, -1, sizeof(*st->owner) * s->p->nr_places);
}

bool matching_repair(struct solver *s, struct state *st)
{
	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		int32_t place = st->place[i];

		if (place < 0 || set_has(domain_of(s, st, i), (unsigned int)place))
			continue;
		st->owner[place] = -1;
		st->place[i] = -1;
	}
	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		if (st->place[i] < 0 && !augment(s, st, i))
			return false;
	}
	return true;
}

/* No solution below this state has a larger total weight. */
static int64_t matching_bound(const struct solver *s, const struct state *st)
{
	int64_t lost = 0;

	for (unsigned int i = 0; i < s->p->nr_things; i++)
		lost += st->price_thing[i];
	for (unsigned int i = 0; i < s->p->nr_places; i++)
		lost += st->price_place[i];
	return (int64_t)s->max_weight * s->p->nr_things - lost;
}

bool weight_suffices(const struct solver *s, const struct state *st)
{
	return !s->weighted || matching_bound(s, st) >= s->need;
}

bool price_suffices(const struct solver *s, const struct state *st, unsigned int thing, unsigned int place)
{
	int64_t extra = s->max_weight - weight_of(s, thing, place) - st->price_thing[thing] - st->price_place[place];

	return !s->weighted || matching_bound(s, st) - extra >= s->need;
}

bool propagate(struct solver *s, struct state *st, unsigned int thing, unsigned int place)
{
	const struct problem *p = s->p;
	uint64_t *own = domain_of(s, st, thing);

	memset(own, 0, sizeof(*own) * p->nr_words);
	set_add(own, place);
	for (unsigned int j = 0; j < p->nr_things; j++) {
		unsigned int kind = *problem_kind(p, thing, j);
		uint64_t *domain = domain_of(s, st, j), any = 0;

		if (s->placed[j] >= 0)
			continue;
		set_remove(domain, place);
		for (unsigned int w = 0; w < p->nr_words; w++) {
			if (kind)
				domain[w] &= problem_row(p, kind, place)[w];
			any |= domain[w];
		}
		if (!any)
			return false;
	}
	return true;
}

/* ---- groups ---- */

/* Each thing that has no group yet becomes the centre of those that are bound to it most tightly. */
static void find_groups(struct solver *s)
{
	const struct problem *p = s->p;
	unsigned int nr_pairs[PROBLEM_MAX_KINDS];
	bool grouped[PROBLEM_MAX] = { false };

	for (unsigned int k = 1; k < p->nr_kinds; k++)
		nr_pairs[k] = set_count(problem_row(p, k, 0), p->nr_places * p->nr_words);
	for (unsigned int i = 0; i < p->nr_things; i++) {
		const uint16_t *kind = problem_kind(p, i, 0);
		unsigned int tightest = UINT32_MAX;

		if (grouped[i])
			continue;
		for (unsigned int j = 0; j < p->nr_things; j++) {
			if (kind[j] && nr_pairs[kind[j]] < tightest)
				tightest = nr_pairs[kind[j]];
		}
		for (unsigned int j = i; j < p->nr_things; j++) {
			if (grouped[j] || (j != i && (!kind[j] || nr_pairs[kind[j]] > tightest)))
				continue;
			grouped[j] = true;
			s->centre_of[j] = (uint16_t)i;
			s->group_size[i]++;
		}
	}
}

/* What a group can have at best with its centre there; -1: it does not fit. State 1 is scratch. */
static int64_t group_weight(struct solver *s, unsigned int centre, unsigned int place)
{
	struct state st = state_at(s, 1);
	bool fits;
	int64_t sum = 0;

	state_copy(s, 1, 0);
	matching_reset(s, &st);
	s->placed[centre] = (int32_t)place;
	fits = propagate(s, &st, centre, place);
	for (unsigned int i = centre; fits && i < s->p->nr_things; i++) {
		if (s->centre_of[i] == centre)
			fits = augment(s, &st, i);
	}
	s->placed[centre] = -1;
	for (unsigned int i = centre; fits && i < s->p->nr_things; i++) {
		if (s->centre_of[i] == centre)
			sum += *problem_weight(s->p, i, (unsigned int)st.place[i]);
	}
	return fits ? sum : -1;
}

/* The smallest share that a thing can have when its centre is there. */
static int64_t smallest_share(const struct solver *s, unsigned int thing, unsigned int place)
{
	const struct state root = state_at(s, 0);
	unsigned int kind = *problem_kind(s->p, s->centre_of[thing], thing);
	int64_t smallest = FAR;

	for_each_place (other, domain_of(s, &root, thing), s->p->nr_words) {
		int64_t share = s->shared[(size_t)thing * s->p->nr_places + (unsigned int)other];

		if (set_has(problem_row(s->p, kind, place), (unsigned int)other) && share < smallest)
			smallest = share;
	}
	return smallest;
}

/*
 * A matching does not know that a group has to stay together. So each thing of the group gets, in each place, its share
 * of the best that the whole group can have around that place, and the centre gets the rest: a matching that tears the
 * group apart then gains little. No solution loses weight by it, so the bound holds.
 */
static void share_group(struct solver *s, unsigned int centre)
{
	const struct problem *p = s->p;
	struct state root = state_at(s, 0);
	uint64_t *domain = domain_of(s, &root, centre);
	int64_t best[PROBLEM_MAX];

	for_each_place (place, domain, p->nr_words) {
		best[place] = group_weight(s, centre, (unsigned int)place);
		if (best[place] < 0)
			set_remove(domain, (unsigned int)place);
	}
	for (unsigned int i = centre + 1; i < p->nr_things; i++) {
		int64_t *shared = s->shared + (size_t)i * p->nr_places;

		if (s->centre_of[i] != centre)
			continue;
		for_each_place (place, domain, p->nr_words) {
			for_each_place (other, problem_row(p, *problem_kind(p, centre, i), (unsigned int)place),
					p->nr_words) {
				int64_t share = best[place] / s->group_size[centre];

				shared[other] = share > shared[other] ? share : shared[other];
			}
		}
	}
	for_each_place (place, domain, p->nr_words) {
		int64_t rest = best[place];

		for (unsigned int i = centre + 1; i < p->nr_things; i++) {
			if (s->centre_of[i] == centre)
				rest -= smallest_share(s, i, (unsigned int)place);
		}
		s->shared[(size_t)centre * p->nr_places + (unsigned int)place] = rest;
	}
}

void share_weights(struct solver *s)
{
	const struct problem *p = s->p;

	find_groups(s);
	s->max_weight = 0;
	for (size_t i = 0; i < (size_t)p->nr_things * p->nr_places; i++)
		s->max_weight = p->weight[i] > s->max_weight ? p->weight[i] : s->max_weight;
	for (unsigned int i = 0; i < p->nr_things; i++) {
		for (unsigned int place = 0; s->group_size[i] == 1 && place < p->nr_places; place++)
			s->shared[(size_t)i * p->nr_places + place] = *problem_weight(p, i, place);
		if (s->group_size[i] > 1)
			share_group(s, i);
	}
	for (size_t i = 0; i < (size_t)p->nr_things * p->nr_places; i++)
		s->max_weight = s->shared[i] > s->max_weight ? s->shared[i] : s->max_weight;
}
