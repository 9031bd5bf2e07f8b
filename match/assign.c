// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: exact search with bounded work.
 *
 * Backtracking over the thing with the fewest places left. Each step removes what has become impossible and asks
 * match/bound.c whether enough can still be reached. Of places that cannot be told apart only one is tried. First any
 * solution is found, then the heaviest one, then the one with the lowest places.
 */
#include "match/solver.h"
#include "amdgpu_plugin_util.h"

static size_t state_size(const struct problem *p)
{
	size_t size = sizeof(uint64_t) * ((size_t)p->nr_things * p->nr_words + p->nr_things + p->nr_places) +
		      sizeof(int32_t) * (p->nr_things + p->nr_places);

	return (size + 7) & ~(size_t)7;
}

/* Enters depth + 1 with one more thing placed. False: that leads nowhere. step_back() follows in any case. */
static bool step_down(struct solver *s, unsigned int depth, unsigned int thing, unsigned int place)
{
	struct state child = state_at(s, depth);
	bool affordable = price_suffices(s, &child, thing, place);

	s->placed[thing] = (int32_t)place;
	s->used[s->symmetry.class_of[place]]++;
	s->steps += (uint64_t)s->p->nr_things * s->p->nr_words;
	if (s->steps > s->limit)
		s->aborted = true;
	if (s->aborted || !affordable)
		return false;
	state_copy(s, depth + 1, depth);
	child = state_at(s, depth + 1);
	if (!propagate(s, &child, thing, place))
		return false;
	/* The weights of its group have changed. */
	if (s->weighted && s->group_size[thing] > 1)
		matching_reset(s, &child);
	return matching_repair(s, &child) && weight_suffices(s, &child);
}

static void step_back(struct solver *s, unsigned int thing)
{
	s->used[s->symmetry.class_of[s->placed[thing]]]--;
	s->placed[thing] = -1;
}

/* Places with the same number lead to the same: those of one class, and of untouched classes of one group. */
static unsigned int outlook(const struct solver *s, unsigned int place)
{
	unsigned int class = s->symmetry.class_of[place];

	return s->used[class] ? class : s->symmetry.nr_classes + s->symmetry.group_of[class];
}

/* The unplaced thing with the fewest places left, a centre before its group. -1 when all are placed. */
static int most_restricted(const struct solver *s, const struct state *st)
{
	unsigned int fewest = PROBLEM_MAX + 1;
	int found = -1;

	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		unsigned int count;

		if (s->placed[i] >= 0 || (s->centre_of[i] != i && s->placed[s->centre_of[i]] < 0))
			continue;
		count = set_count(domain_of(s, st, i), s->p->nr_words);
		if (count < fewest) {
			fewest = count;
			found = (int)i;
		}
	}
	return found;
}

static int64_t total_weight(const struct solver *s, const int32_t *place)
{
	int64_t sum = 0;

	for (unsigned int i = 0; i < s->p->nr_things; i++)
		sum += *problem_weight(s->p, i, (unsigned int)place[i]);
	return sum;
}

static bool take_solution(struct solver *s)
{
	int64_t weight = s->weighted ? total_weight(s, s->placed) : 0;

	/* Bounds need not be exact. */
	if (weight < s->need)
		return false;
	s->found = true;
	memcpy(s->solution, s->placed, sizeof(s->solution));
	/* From here on only better ones count. */
	s->need = weight + 1;
	return s->first_only;
}

/* The places to try, in order. */
static unsigned int list_places(const struct solver *s, const struct state *st, unsigned int thing, uint16_t *places)
{
	int32_t first = s->guided ? st->place[thing] : -1;
	unsigned int count = 0;

	if (first >= 0)
		places[count++] = (uint16_t)first;
	for_each_place (place, domain_of(s, st, thing), s->p->nr_words) {
		if (place != first)
			places[count++] = (uint16_t)place;
	}
	return count;
}

/* Searches below a state whose domains and matching are in order. True: stop everything. */
static bool descend(struct solver *s, unsigned int depth)
{
	struct state st = state_at(s, depth);
	int thing = most_restricted(s, &st);
	bool failed[2 * PROBLEM_MAX] = { false };
	uint16_t places[PROBLEM_MAX];
	unsigned int nr_places;

	if (thing < 0)
		return take_solution(s);
	nr_places = list_places(s, &st, (unsigned int)thing, places);
	for (unsigned int i = 0; i < nr_places; i++) {
		unsigned int seen = outlook(s, places[i]);
		bool stop;

		if (failed[seen])
			continue;
		stop = step_down(s, depth, (unsigned int)thing, places[i]) && descend(s, depth + 1);
		step_back(s, (unsigned int)thing);
		if (stop || s->aborted)
			return true;
		failed[seen] = true;
	}
	return false;
}

/* Begins a search for any solution, or for the heaviest. False: things have too few places, see s->scanned. */
static bool start(struct solver *s, bool weighted)
{
	struct state root = state_at(s, 0);

	s->weighted = weighted;
	if (weighted)
		share_weights(s);
	matching_reset(s, &root);
	symmetry_find(&s->symmetry, s->p, weighted);
	return matching_repair(s, &root);
}

/* After start() failed: who has too few places? */
static void report_crowd(const struct solver *s, struct assignment *ret)
{
	struct state root = state_at(s, 0);

	ret->crowded = true;
	for (unsigned int i = 0; i < s->p->nr_places; i++) {
		ret->crowd_room[i] = s->scanned[i];
		if (s->scanned[i])
			ret->in_crowd[root.owner[i]] = true;
	}
	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		/* The first without a place in the matching is the one that failed. */
		if (root.place[i] < 0) {
			ret->in_crowd[i] = true;
			break;
		}
	}
}

static int solve_any(struct solver *s, struct assignment *ret)
{
	if (!start(s, false)) {
		report_crowd(s, ret);
		return -ENODEV;
	}
	s->first_only = true;
	descend(s, 0);
	return s->found ? 0 : s->aborted ? -E2BIG : -ENODEV;
}

/* Replaces the solution by the heaviest one, as far as the limit allows. */
static void solve_heaviest(struct solver *s)
{
	struct state root = state_at(s, 0);

	start(s, true);
	s->need = total_weight(s, s->solution) + 1;
	s->guided = true;
	s->first_only = false;
	if (weight_suffices(s, &root))
		descend(s, 0);
	s->guided = false;
	s->first_only = true;
}

/* Moves a thing to a place of the same class; whoever is there gets the old one. */
static void swap_places(struct solver *s, unsigned int thing, int place)
{
	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		if (s->solution[i] == place)
			s->solution[i] = s->solution[thing];
	}
	s->solution[thing] = place;
}

/* Looks for an equally heavy solution that has this thing on a lower place. State 0 has those before it placed. */
static void lower_thing(struct solver *s, unsigned int thing, int64_t weight)
{
	const uint16_t *class_of = s->symmetry.class_of;
	struct state base = state_at(s, 0);
	bool failed[2 * PROBLEM_MAX] = { false };

	for_each_place (place, domain_of(s, &base, thing), s->p->nr_words) {
		unsigned int seen = outlook(s, (unsigned int)place);

		if (place >= s->solution[thing])
			return;
		if (failed[seen])
			continue;
		if (class_of[place] == class_of[s->solution[thing]]) {
			swap_places(s, thing, place);
			return;
		}
		s->need = weight;
		s->found = false;
		if (step_down(s, 0, thing, (unsigned int)place))
			descend(s, 1);
		step_back(s, thing);
		if (s->found || s->aborted)
			return;
		failed[seen] = true;
	}
}

/* Among equally heavy solutions, the one with the lowest places, thing by thing. */
static void solve_lowest(struct solver *s)
{
	int64_t weight = total_weight(s, s->solution);

	for (unsigned int i = 0; i < s->p->nr_things && !s->aborted; i++) {
		lower_thing(s, i, weight);
		s->need = weight;
		if (s->aborted || !step_down(s, 0, i, (unsigned int)s->solution[i]))
			return;
		state_copy(s, 0, 1);
	}
}

static bool has_weights(const struct problem *p)
{
	for (size_t i = 0; i < (size_t)p->nr_things * p->nr_places; i++) {
		if (p->weight[i])
			return true;
	}
	return false;
}

static int solve(struct solver *s, uint64_t limit, struct assignment *ret)
{
	int err;

	s->limit = limit;
	err = solve_any(s, ret);
	if (err)
		return err;
	if (has_weights(s->p))
		solve_heaviest(s);
	if (!s->aborted)
		solve_lowest(s);
	memcpy(ret->place, s->solution, sizeof(ret->place));
	ret->best = !s->aborted;
	return 0;
}

static int solver_init(struct solver *s, const struct problem *p)
{
	memset(s, 0, sizeof(*s));
	s->p = p;
	s->state_size = state_size(p);
	for (unsigned int i = 0; i < PROBLEM_MAX; i++)
		s->centre_of[i] = (uint16_t)i;
	memset(s->placed, -1, sizeof(s->placed));
	s->states = calloc(p->nr_things + 2, s->state_size);
	s->shared = calloc((size_t)p->nr_things * p->nr_places + 1, sizeof(*s->shared));
	if (!s->states || !s->shared)
		return -ENOMEM;
	memcpy(state_at(s, 0).domain, p->domain, sizeof(*p->domain) * p->nr_things * p->nr_words);
	return 0;
}

int assign_solve(const struct problem *p, uint64_t limit, struct assignment *ret)
{
	_cleanup_free_ struct solver *s = malloc(sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->best = true;
	if (!p->nr_things)
		return 0;
	err = solver_init(s, p);
	if (!err)
		err = solve(s, limit, ret);
	ret->steps = s->steps;
	free(s->shared);
	free(s->states);
	return err;
}
