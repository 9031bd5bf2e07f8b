// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: exact search with bounded work.
 *
 * Backtracking over the thing with the fewest places left; each step removes
 * what has become impossible, keeps a maximum-weight matching of things and
 * places (its dual value bounds what can still be reached), and looks up
 * whether an equivalent remainder failed before. Places that cannot be told
 * apart are tried once.
 */
#include "match/assign_internal.h"
#include "amdgpu_plugin_util.h"

/* About a second, for machines that are puzzles; ordinary ones of 64 GPUs need a thousandth of it. */
#define WORK_LIMIT (200 * 1000 * 1000)

/* For a better assignment when one is found. */
#define BETTER_LIMIT (50 * 1000 * 1000)

/* A search that takes longer than this looks harder at each step. */
#define THOROUGH_WORK (8 * 1000 * 1000)

#define FAR INT64_MAX

/* What is known at one depth of the search. Arrays lie in one block so that a step down is one copy. */
struct state {
	uint64_t *domain;     /* n sets */
	int64_t *price_thing; /* dual values of the matching, in lost weight */
	int64_t *price_place; /* <= 0 */
	int32_t *place;	      /* of each thing in the matching, -1: none */
	int32_t *owner;	      /* thing of each place, -1: none */
};

struct solver {
	const struct assign_problem *p;
	unsigned int words;
	bool weighted;	 /* false: any assignment will do */
	bool guided;	 /* try the matching's place first */
	bool first_only; /* stop at the first solution */
	bool aborted;
	uint64_t work;
	uint64_t limit;
	uint32_t max_weight;
	int64_t need; /* total weight that a solution must have */
	int64_t have; /* weight of the things placed so far */
	bool found;
	int64_t found_weight;
	int32_t placed[ASSIGN_MAX]; /* by the search, -1: not yet */
	int32_t solution[ASSIGN_MAX];
	int32_t deepest[ASSIGN_MAX];
	unsigned int n_deepest; /* things placed in it, plus 1 */
	int stuck;
	struct symmetry *symmetry;
	struct group_bound *groups; /* while weighted */
	size_t state_size;
	char *states; /* n + 2 of them, each state_size long */
	/* Scratch of augment() */
	int64_t dist[ASSIGN_MAX];
	int32_t from[ASSIGN_MAX];
	bool scanned[ASSIGN_MAX];
};

int assign_problem_init(struct assign_problem *p, unsigned int n, unsigned int m, unsigned int n_kinds)
{
	size_t words = ASSIGN_WORDS(m);

	memset(p, 0, sizeof(*p));
	if (n > ASSIGN_MAX || m > ASSIGN_MAX || n_kinds > ASSIGN_MAX_KINDS)
		return -E2BIG;
	p->n = n;
	p->m = m;
	p->n_kinds = n_kinds;
	/* One more than needed: nothing is no reason for a NULL. */
	p->domain = calloc(n * words + 1, sizeof(*p->domain));
	p->kind = calloc((size_t)n * n + 1, sizeof(*p->kind));
	p->row = calloc((size_t)n_kinds * m * words + 1, sizeof(*p->row));
	p->weight = calloc((size_t)n * m + 1, sizeof(*p->weight));
	if (p->domain && p->kind && p->row && p->weight)
		return 0;
	assign_problem_done(p);
	return -ENOMEM;
}

void assign_problem_done(struct assign_problem *p)
{
	free(p->domain);
	free(p->kind);
	free(p->row);
	free(p->weight);
	memset(p, 0, sizeof(*p));
}

static struct state state_at(const struct solver *s, unsigned int depth)
{
	const struct assign_problem *p = s->p;
	char *at = s->states + s->state_size * depth;
	struct state st;

	st.domain = (uint64_t *)at;
	at += sizeof(*st.domain) * p->n * s->words;
	st.price_thing = (int64_t *)at;
	at += sizeof(*st.price_thing) * p->n;
	st.price_place = (int64_t *)at;
	at += sizeof(*st.price_place) * p->m;
	st.place = (int32_t *)at;
	at += sizeof(*st.place) * p->n;
	st.owner = (int32_t *)at;
	return st;
}

static size_t state_size(const struct assign_problem *p, unsigned int words)
{
	size_t size = sizeof(uint64_t) * (p->n * words + p->n + p->m) + sizeof(int32_t) * (p->n + p->m);

	return (size + 7) & ~(size_t)7;
}

static void state_copy(const struct solver *s, unsigned int to, unsigned int from)
{
	memcpy(s->states + s->state_size * to, s->states + s->state_size * from, s->state_size);
}

static uint64_t *domain_of(const struct solver *s, const struct state *st, unsigned int thing)
{
	return st->domain + (size_t)thing * s->words;
}

static unsigned int set_count(const uint64_t *set, unsigned int words)
{
	unsigned int n = 0;

	for (unsigned int w = 0; w < words; w++)
		n += (unsigned int)__builtin_popcountll(set[w]);
	return n;
}

static int64_t weight_of(const struct solver *s, unsigned int thing, unsigned int place)
{
	return s->weighted ? s->p->weight[(size_t)thing * s->p->m + place] : 0;
}

static bool out_of_work(struct solver *s, uint64_t steps)
{
	s->work += steps;
	if (s->work > s->limit)
		s->aborted = true;
	return s->aborted;
}

/* Lengthens the shortest paths over the places that this thing could take. */
static void relax(struct solver *s, const struct state *st, unsigned int thing, int64_t base)
{
	const uint64_t *domain = domain_of(s, st, thing);
	unsigned int place;

	for_each_place(place, domain, s->words)
	{
		int64_t dist;

		if (s->scanned[place])
			continue;
		dist = base + (int64_t)s->max_weight - weight_of(s, thing, place) - st->price_thing[thing] -
		       st->price_place[place];
		if (dist < s->dist[place]) {
			s->dist[place] = dist;
			s->from[place] = (int32_t)thing;
		}
	}
}

static int nearest_unscanned(const struct solver *s)
{
	int64_t best = FAR;
	int found = -1;

	for (unsigned int place = 0; place < s->p->m; place++) {
		if (!s->scanned[place] && s->dist[place] < best) {
			best = s->dist[place];
			found = (int)place;
		}
	}
	return found;
}

/* Keeps the duals feasible, so that their sum stays a bound. */
static void update_prices(struct solver *s, struct state *st, unsigned int thing, int64_t length)
{
	for (unsigned int place = 0; place < s->p->m; place++) {
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

	for (unsigned int i = 0; i < s->p->m; i++) {
		s->dist[i] = FAR;
		s->scanned[i] = false;
	}
	for (;;) {
		relax(s, st, at, length);
		s->work += s->p->m;
		place = nearest_unscanned(s);
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
	for (unsigned int i = 0; i < s->p->n; i++) {
		int32_t place = st->place[i];

		if (place < 0 || assign_set_has(domain_of(s, st, i), (unsigned int)place))
			continue;
		st->owner[place] = -1;
		st->place[i] = -1;
	}
	for (unsigned int i = 0; i < s->p->n; i++) {
		if (st->place[i] < 0 && !augment(s, st, i))
			return false;
	}
	return true;
}

/* No assignment below this state has a larger total weight. */
static int64_t matching_bound(const struct solver *s, const struct state *st)
{
	int64_t lost = 0;

	for (unsigned int i = 0; i < s->p->n; i++)
		lost += st->price_thing[i];
	for (unsigned int i = 0; i < s->p->m; i++)
		lost += st->price_place[i];
	return (int64_t)s->max_weight * s->p->n - lost;
}

/* Can the weight that is needed still be reached? Cheap, then less cheap: for domains, and for a matching. */
static bool domains_allow(const struct solver *s, const struct state *st)
{
	return !s->weighted || group_bound_get(s->groups, st->domain, s->placed) >= s->need;
}

static bool matching_allows(const struct solver *s, const struct state *st)
{
	return !s->weighted || matching_bound(s, st) >= s->need;
}

/* Puts the thing there and takes away what that makes impossible. */
static bool propagate(struct solver *s, struct state *st, unsigned int thing, unsigned int place)
{
	const struct assign_problem *p = s->p;
	uint64_t *own = domain_of(s, st, thing);

	memset(own, 0, sizeof(*own) * s->words);
	assign_set_add(own, place);
	for (unsigned int j = 0; j < p->n; j++) {
		unsigned int kind = p->kind[(size_t)thing * p->n + j];
		uint64_t *domain = domain_of(s, st, j);

		if (j == thing || s->placed[j] >= 0)
			continue;
		assign_set_remove(domain, place);
		if (kind) {
			const uint64_t *row = assign_row(p, kind, place);

			for (unsigned int w = 0; w < s->words; w++)
				domain[w] &= row[w];
		}
		if (assign_set_empty(domain, s->words))
			return false;
	}
	return true;
}

/* Enters depth + 1 with one more thing placed. False: that leads nowhere. */
static bool step_down(struct solver *s, unsigned int depth, unsigned int thing, unsigned int place)
{
	struct state child;

	if (out_of_work(s, s->p->n))
		return false;
	state_copy(s, depth + 1, depth);
	child = state_at(s, depth + 1);
	s->placed[thing] = (int32_t)place;
	s->have += weight_of(s, thing, place);
	/* The cheapest first */
	if (!propagate(s, &child, thing, place) || !domains_allow(s, &child))
		return false;
	if (symmetry_failed_before(s->symmetry, child.domain, s->placed, s->need - s->have))
		return false;
	return repair_matching(s, &child) && matching_allows(s, &child);
}

static void step_back(struct solver *s, unsigned int thing)
{
	s->have -= weight_of(s, thing, (unsigned int)s->placed[thing]);
	s->placed[thing] = -1;
}

/* The unplaced thing with the fewest places left, -1 when all are placed. */
static int most_restricted(const struct solver *s, const struct state *st)
{
	unsigned int fewest = ASSIGN_MAX + 1;
	int found = -1;

	for (unsigned int i = 0; i < s->p->n; i++) {
		unsigned int count;

		if (s->placed[i] >= 0)
			continue;
		count = set_count(domain_of(s, st, i), s->words);
		if (count < fewest) {
			fewest = count;
			found = (int)i;
		}
	}
	return found;
}

static bool take_solution(struct solver *s)
{
	/* Bounds need not be exact. */
	if (s->have < s->need)
		return false;
	s->found = true;
	s->found_weight = s->have;
	memcpy(s->solution, s->placed, sizeof(s->solution));
	/* From here on only better ones count. */
	s->need = s->have + 1;
	return s->first_only;
}

static void note_depth(struct solver *s, unsigned int depth, int thing)
{
	if (depth < s->n_deepest)
		return;
	s->n_deepest = depth + 1;
	s->stuck = thing;
	memcpy(s->deepest, s->placed, sizeof(s->deepest));
}

/* The places to try, in order. */
static unsigned int list_places(const struct solver *s, const struct state *st, unsigned int thing, uint16_t *places)
{
	unsigned int n = 0, place;
	int32_t first = s->guided ? st->place[thing] : -1;

	if (first >= 0)
		places[n++] = (uint16_t)first;
	for_each_place(place, domain_of(s, st, thing), s->words)
	{
		if ((int32_t)place != first)
			places[n++] = (uint16_t)place;
	}
	return n;
}

/* Before another group is begun: thins out the domains again. False: this leads nowhere. */
static bool filter_again(struct solver *s, struct state *st, int *thing)
{
	int r, empty;

	if (s->work < THOROUGH_WORK || !group_untouched(s->groups, s->placed, (unsigned int)*thing))
		return true;
	r = assign_filter(s->p, st->domain, s->symmetry, &s->work, UINT64_MAX, &empty);
	if (r == -ENODEV || (r == 0 && (!domains_allow(s, st) || !repair_matching(s, st) || !matching_allows(s, st))))
		return false;
	*thing = most_restricted(s, st);
	return !symmetry_failed_before(s->symmetry, st->domain, s->placed, s->need - s->have);
}

/* Searches below a state whose domains and matching are in order. True: stop everything. */
static bool descend(struct solver *s, unsigned int depth)
{
	struct state st = state_at(s, depth);
	int thing = most_restricted(s, &st);
	uint64_t failed[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 };
	uint16_t places[ASSIGN_MAX];
	unsigned int n_places;

	if (thing < 0)
		return take_solution(s);
	note_depth(s, depth, thing);
	if (!filter_again(s, &st, &thing))
		return false;
	n_places = list_places(s, &st, (unsigned int)thing, places);
	for (unsigned int i = 0; i < n_places; i++) {
		unsigned int class = symmetry_class(s->symmetry, places[i]);
		bool stop = false;

		if (assign_set_has(failed, class))
			continue;
		if (step_down(s, depth, (unsigned int)thing, places[i]))
			stop = descend(s, depth + 1);
		if (s->placed[thing] >= 0)
			step_back(s, (unsigned int)thing);
		if (stop || s->aborted)
			return true;
		assign_set_add(failed, class);
	}
	symmetry_note_failure(s->symmetry, st.domain, s->placed, s->need - s->have);
	return false;
}

static void solver_done(struct solver *s)
{
	symmetry_free(s->symmetry);
	group_bound_free(s->groups);
	free(s->states);
}

static int solver_init(struct solver *s, const struct assign_problem *p, uint64_t limit)
{
	memset(s, 0, sizeof(*s));
	s->p = p;
	s->words = ASSIGN_WORDS(p->m);
	s->limit = limit;
	s->stuck = -1;
	s->state_size = state_size(p, s->words);
	memset(s->placed, -1, sizeof(s->placed));
	memset(s->deepest, -1, sizeof(s->deepest));
	s->states = calloc(p->n + 2, s->state_size);
	if (!s->states)
		return -ENOMEM;
	memcpy(state_at(s, 0).domain, p->domain, sizeof(*p->domain) * p->n * s->words);
	return 0;
}

/* Chooses between "any" and "the heaviest"; the matching is made anew. False: there is no matching. */
static bool start_root(struct solver *s, bool weighted)
{
	const struct assign_problem *p = s->p;
	struct state root = state_at(s, 0);

	s->weighted = weighted;
	s->max_weight = 0;
	for (size_t i = 0; weighted && i < (size_t)p->n * p->m; i++)
		s->max_weight = p->weight[i] > s->max_weight ? p->weight[i] : s->max_weight;
	memset(root.price_thing, 0, sizeof(*root.price_thing) * p->n);
	memset(root.price_place, 0, sizeof(*root.price_place) * p->m);
	memset(root.place, -1, sizeof(*root.place) * p->n);
	memset(root.owner, -1, sizeof(*root.owner) * p->m);
	return repair_matching(s, &root);
}

static int new_symmetry(struct solver *s, bool weighted)
{
	symmetry_free(s->symmetry);
	s->symmetry = symmetry_new(s->p, state_at(s, 0).domain, weighted);
	return s->symmetry ? 0 : -ENOMEM;
}

/* After start_root() failed on the given domains: who has too few places? */
static void report_crowd(const struct solver *s, struct assign_result *ret)
{
	struct state root = state_at(s, 0);

	ret->crowded = true;
	for (unsigned int i = 0; i < s->p->m; i++) {
		ret->crowd_room[i] = s->scanned[i];
		if (s->scanned[i])
			ret->in_crowd[root.owner[i]] = true;
	}
	for (unsigned int i = 0; i < s->p->n; i++) {
		/* The first without a place in the matching is the one that failed. */
		if (root.place[i] < 0) {
			ret->in_crowd[i] = true;
			break;
		}
	}
}

static void report_attempt(const struct solver *s, struct assign_result *ret)
{
	for (unsigned int i = 0; i < ASSIGN_MAX; i++)
		ret->partial[i] = s->deepest[i];
	ret->stuck = s->stuck;
}

/* Finds any assignment. */
static int solve_any(struct solver *s, struct assign_result *ret)
{
	int r;

	if (!start_root(s, false)) {
		report_crowd(s, ret);
		return -ENODEV;
	}
	r = new_symmetry(s, false);
	if (r < 0)
		return r;
	r = assign_filter(s->p, state_at(s, 0).domain, s->symmetry, &s->work, s->limit / 2, &s->stuck);
	if (r == 0 && !start_root(s, false))
		r = -ENODEV;
	if (r == 0) {
		s->groups = group_bound_new(s->p, state_at(s, 0).domain);
		r = s->groups ? 0 : -ENOMEM;
	}
	if (r == 0) {
		s->first_only = true;
		descend(s, 0);
		r = s->found ? 0 : s->aborted ? -E2BIG : -ENODEV;
	}
	report_attempt(s, ret);
	return r;
}

static bool has_weights(const struct assign_problem *p)
{
	for (size_t i = 0; i < (size_t)p->n * p->m; i++) {
		if (p->weight[i])
			return true;
	}
	return false;
}

/* Replaces the solution by the heaviest one, as far as the work limit allows. */
static int solve_heaviest(struct solver *s)
{
	struct state root;
	int r = new_symmetry(s, true);

	if (r < 0)
		return r;
	root = state_at(s, 0);
	start_root(s, true);
	s->found_weight = 0;
	for (unsigned int i = 0; i < s->p->n; i++)
		s->found_weight += weight_of(s, i, (unsigned int)s->solution[i]);
	s->need = s->found_weight + 1;
	s->guided = true;
	s->first_only = false;
	if (domains_allow(s, &root) && matching_allows(s, &root))
		descend(s, 0);
	s->guided = false;
	s->first_only = true;
	return 0;
}

/* Swaps two places in the solution; whoever is on the new one gets the old one. */
static void swap_places(struct solver *s, unsigned int thing, unsigned int place)
{
	for (unsigned int i = 0; i < s->p->n; i++) {
		if (s->solution[i] == (int32_t)place)
			s->solution[i] = s->solution[thing];
	}
	s->solution[thing] = (int32_t)place;
}

/* Looks for an equally heavy solution that has this thing on a lower place. State 0 has those before it placed. */
static void lower_thing(struct solver *s, unsigned int thing)
{
	struct state base = state_at(s, 0);
	uint64_t failed[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 };
	unsigned int place;

	for_each_place(place, domain_of(s, &base, thing), s->words)
	{
		unsigned int class = symmetry_class(s->symmetry, place);

		if ((int32_t)place >= s->solution[thing])
			return;
		if (assign_set_has(failed, class))
			continue;
		if (class == symmetry_class(s->symmetry, (unsigned int)s->solution[thing])) {
			swap_places(s, thing, place);
			return;
		}
		s->need = s->found_weight;
		s->found = false;
		if (step_down(s, 0, thing, place))
			descend(s, 1);
		if (s->placed[thing] >= 0)
			step_back(s, thing);
		if (s->found || s->aborted)
			return;
		assign_set_add(failed, class);
	}
}

/* Among equally heavy solutions, the one with the lowest places, thing by thing. */
static void solve_lowest(struct solver *s)
{
	for (unsigned int i = 0; i < s->p->n && !s->aborted; i++) {
		lower_thing(s, i);
		s->need = s->found_weight;
		if (s->aborted || !step_down(s, 0, i, (unsigned int)s->solution[i]))
			break;
		state_copy(s, 0, 1);
	}
}

static int solve(struct solver *s, struct assign_result *ret)
{
	int r = solve_any(s, ret);

	if (r < 0)
		return r;
	s->limit = s->work + BETTER_LIMIT;
	if (has_weights(s->p))
		r = solve_heaviest(s);
	if (r < 0)
		return r;
	if (!s->aborted)
		solve_lowest(s);
	for (unsigned int i = 0; i < s->p->n; i++)
		ret->place[i] = s->solution[i];
	ret->best = !s->aborted;
	return 0;
}

int assign_solve(const struct assign_problem *p, uint64_t work_limit, struct assign_result *ret)
{
	_cleanup_free_ struct solver *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->stuck = -1;
	ret->best = true;
	if (!p->n)
		return 0;
	r = solver_init(s, p, work_limit ? work_limit : WORK_LIMIT);
	if (r == 0)
		r = solve(s, ret);
	ret->work = s->work;
	solver_done(s);
	return r;
}
