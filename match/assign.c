// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: exact search with bounded work.
 *
 * Backtracking over the thing with the fewest places left. Each step removes
 * what has become impossible and mends a maximum-weight matching of things and
 * places: without one there is no solution, and the value of its dual bounds
 * the weight that can still be reached. Of places that cannot be told apart
 * one is tried. First any solution is found, then the heaviest one, then the
 * one with the lowest places.
 */
#include "match/problem.h"
#include "amdgpu_plugin_util.h"

#define FAR INT64_MAX

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
	uint32_t max_weight;
	int64_t need; /* total weight that a solution must have */
	bool found;
	int32_t placed[PROBLEM_MAX]; /* by the search, -1: not yet */
	int32_t solution[PROBLEM_MAX];
	int32_t deepest[PROBLEM_MAX];
	unsigned int max_depth; /* of deepest, plus 1 */
	int stuck;
	struct symmetry symmetry;
	unsigned int used[PROBLEM_MAX]; /* places of each class that the search has given away */
	size_t state_size;
	char *states; /* nr_things + 2 of them */
	/* Scratch of augment() */
	int64_t dist[PROBLEM_MAX];
	int32_t from[PROBLEM_MAX];
	bool scanned[PROBLEM_MAX];
};

static struct state state_at(const struct solver *s, unsigned int depth)
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

static size_t state_size(const struct problem *p)
{
	size_t size = sizeof(uint64_t) * ((size_t)p->nr_things * p->nr_words + p->nr_things + p->nr_places) +
		      sizeof(int32_t) * (p->nr_things + p->nr_places);

	return (size + 7) & ~(size_t)7;
}

static void state_copy(const struct solver *s, unsigned int to, unsigned int from)
{
	memcpy(s->states + s->state_size * to, s->states + s->state_size * from, s->state_size);
}

static uint64_t *domain_of(const struct solver *s, const struct state *st, unsigned int thing)
{
	return st->domain + (size_t)thing * s->p->nr_words;
}

static int64_t weight_of(const struct solver *s, unsigned int thing, unsigned int place)
{
	return s->weighted ? *problem_weight(s->p, thing, place) : 0;
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

/* Mends the matching after domains have shrunk. False: it cannot be mended. */
static bool repair_matching(struct solver *s, struct state *st)
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

static bool weight_suffices(const struct solver *s, const struct state *st)
{
	return !s->weighted || matching_bound(s, st) >= s->need;
}

/* ---- the search ---- */

/* Puts the thing there and takes away what that makes impossible. */
static bool propagate(struct solver *s, struct state *st, unsigned int thing, unsigned int place)
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

/* Enters depth + 1 with one more thing placed. False: that leads nowhere. step_back() follows in any case. */
static bool step_down(struct solver *s, unsigned int depth, unsigned int thing, unsigned int place)
{
	struct state child;

	s->placed[thing] = (int32_t)place;
	s->used[s->symmetry.class_of[place]]++;
	s->steps += (uint64_t)s->p->nr_things * s->p->nr_words;
	if (s->steps > s->limit) {
		s->aborted = true;
		return false;
	}
	state_copy(s, depth + 1, depth);
	child = state_at(s, depth + 1);
	return propagate(s, &child, thing, place) && repair_matching(s, &child) && weight_suffices(s, &child);
}

static void step_back(struct solver *s, unsigned int thing)
{
	s->used[s->symmetry.class_of[s->placed[thing]]]--;
	s->placed[thing] = -1;
}

/* Places with one number lead to the same: those of one class, and of untouched classes of one group. */
static unsigned int outlook(const struct solver *s, unsigned int place)
{
	unsigned int class = s->symmetry.class_of[place];

	return s->used[class] ? class : s->symmetry.nr_classes + s->symmetry.group_of[class];
}

/* The unplaced thing with the fewest places left, -1 when all are placed. */
static int most_restricted(const struct solver *s, const struct state *st)
{
	unsigned int fewest = PROBLEM_MAX + 1;
	int found = -1;

	for (unsigned int i = 0; i < s->p->nr_things; i++) {
		unsigned int count;

		if (s->placed[i] >= 0)
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
		sum += weight_of(s, i, (unsigned int)place[i]);
	return sum;
}

static bool take_solution(struct solver *s)
{
	int64_t weight = total_weight(s, s->placed);

	/* Bounds need not be exact. */
	if (weight < s->need)
		return false;
	s->found = true;
	memcpy(s->solution, s->placed, sizeof(s->solution));
	/* From here on only better ones count. */
	s->need = weight + 1;
	return s->first_only;
}

static void note_depth(struct solver *s, unsigned int depth, int thing)
{
	if (depth < s->max_depth)
		return;
	s->max_depth = depth + 1;
	s->stuck = thing;
	memcpy(s->deepest, s->placed, sizeof(s->deepest));
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
	note_depth(s, depth, thing);
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
	const struct problem *p = s->p;
	struct state root = state_at(s, 0);

	s->weighted = weighted;
	s->max_weight = 0;
	for (size_t i = 0; weighted && i < (size_t)p->nr_things * p->nr_places; i++)
		s->max_weight = p->weight[i] > s->max_weight ? p->weight[i] : s->max_weight;
	memset(root.price_thing, 0, sizeof(*root.price_thing) * p->nr_things);
	memset(root.price_place, 0, sizeof(*root.price_place) * p->nr_places);
	memset(root.place, -1, sizeof(*root.place) * p->nr_things);
	memset(root.owner, -1, sizeof(*root.owner) * p->nr_places);
	symmetry_find(&s->symmetry, p, weighted);
	return repair_matching(s, &root);
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
	if (s->found)
		return 0;
	memcpy(ret->partial, s->deepest, sizeof(ret->partial));
	ret->stuck = s->stuck;
	return s->aborted ? -E2BIG : -ENODEV;
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
	s->limit = s->steps + limit;
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
	s->stuck = -1;
	s->state_size = state_size(p);
	memset(s->placed, -1, sizeof(s->placed));
	memset(s->deepest, -1, sizeof(s->deepest));
	s->states = calloc(p->nr_things + 2, s->state_size);
	if (!s->states)
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
	ret->stuck = -1;
	ret->best = true;
	if (!p->nr_things)
		return 0;
	err = solver_init(s, p);
	if (err)
		return err;
	err = solve(s, limit, ret);
	ret->steps = s->steps;
	free(s->states);
	return err;
}
