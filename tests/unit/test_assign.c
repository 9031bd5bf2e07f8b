// SPDX-License-Identifier: GPL-2.0-only
/*
 * The assignment search against brute force, and cases that are hard for a
 * search without symmetry.
 *
 * ASSIGN_SEED chooses the random problems, ASSIGN_ROUNDS how many.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "match/problem.h"
#include "amdgpu_plugin_util.h"

#define ROUNDS 20000
#define LIMIT  (5 * 1000 * 1000)

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((random_state >> 33) % n);
}

static uint64_t number_from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Whether there is an assignment, by trying all. */
struct oracle {
	const struct problem *p;
	int place[PROBLEM_MAX];
};

static bool oracle_allows(const struct oracle *o, unsigned int thing, unsigned int place)
{
	if (!set_has(problem_domain(o->p, thing), place))
		return false;
	for (unsigned int i = 0; i < thing; i++) {
		unsigned int kind = o->p->kind[i * o->p->nr_things + thing];

		if (o->place[i] == (int)place)
			return false;
		if (kind && !set_has(problem_row(o->p, kind, (unsigned int)o->place[i]), place))
			return false;
	}
	return true;
}

static bool oracle_finds(struct oracle *o, unsigned int thing)
{
	for (unsigned int place = 0; thing < o->p->nr_things && place < o->p->nr_places; place++) {
		if (!oracle_allows(o, thing, place))
			continue;
		o->place[thing] = (int)place;
		if (oracle_finds(o, thing + 1))
			return true;
	}
	return thing == o->p->nr_things;
}

/* Kinds come in pairs (1, 2), (3, 4), ... of which one is the other transposed. */
static void random_rows(struct problem *p, uint32_t percent)
{
	for (unsigned int kind = 1; kind + 1 < p->nr_kinds; kind += 2) {
		for (unsigned int a = 0; a < p->nr_places; a++) {
			for (unsigned int b = 0; b < p->nr_places; b++) {
				if (a == b || random_below(100) >= percent)
					continue;
				set_add(problem_row(p, kind, a), b);
				set_add(problem_row(p, kind + 1, b), a);
			}
		}
	}
}

static void random_problem(struct problem *p)
{
	unsigned int m = 1 + random_below(6), n = 1 + random_below(m);
	uint32_t domain_percent = 50 + random_below(51), weight_percent = random_below(60);
	uint32_t kind_percent = random_below(101);

	assert_int_equal(problem_init(p, n, m, 1 + 2 * random_below(3)), 0);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++) {
			if (random_below(100) < domain_percent)
				set_add(problem_domain(p, i), v);
			if (random_below(100) < weight_percent)
				p->weight[i * m + v] = 1 + random_below(3);
		}
	}
	random_rows(p, 30 + random_below(71));
	for (unsigned int i = 0; p->nr_kinds > 1 && i < n; i++) {
		for (unsigned int j = i + 1; j < n; j++) {
			unsigned int kind = 1 + random_below(p->nr_kinds - 1);

			if (random_below(100) >= kind_percent)
				continue;
			p->kind[i * n + j] = (uint16_t)kind;
			p->kind[j * n + i] = (uint16_t)(((kind - 1) ^ 1) + 1);
		}
	}
}

static void compare_with_oracle(const struct problem *p, uint64_t round)
{
	struct oracle o = { .p = p };
	struct assignment result;
	int r = assign_solve(p, LIMIT, &result);
	bool found = oracle_finds(&o, 0);

	if (r != (found ? 0 : -ENODEV))
		fail_msg("round %" PRIu64 ": assign_solve says %d, brute force %s", round, r,
			 found ? "found one" : "found none");
	for (unsigned int i = 0; found && i < p->nr_things; i++) {
		o.place[i] = result.place[i];
		if (!oracle_allows(&o, i, (unsigned int)result.place[i]))
			fail_msg("round %" PRIu64 ": thing %u may not be on place %d", round, i, result.place[i]);
	}
}

static void assign_agrees_with_brute_force(void **arg)
{
	uint64_t seed = number_from_env("ASSIGN_SEED", (uint64_t)time(NULL));
	uint64_t rounds = number_from_env("ASSIGN_ROUNDS", ROUNDS);

	(void)arg;
	print_message("ASSIGN_SEED=%" PRIu64 " ASSIGN_ROUNDS=%" PRIu64 "\n", seed, rounds);
	random_state = seed;
	for (uint64_t round = 0; round < rounds; round++) {
		struct problem p;

		random_problem(&p);
		compare_with_oracle(&p, round);
		problem_done(&p);
	}
}

/* Cliques of random sizes on both sides; places of one clique are alike, unless a weight or a gap tells them apart. */
static void random_cliques(struct problem *p)
{
	unsigned int m = 6 + random_below(3), n = 4 + random_below(3), room[PROBLEM_MAX], clique[PROBLEM_MAX];
	uint32_t gaps = random_below(3) ? 0 : 15, weights = random_below(2) ? 0 : 10;

	assert_int_equal(problem_init(p, n, m, 2), 0);
	for (unsigned int v = 0; v < m; v++)
		room[v] = v && random_below(3) ? room[v - 1] : v;
	for (unsigned int i = 0; i < n; i++)
		clique[i] = i && random_below(2) ? clique[i - 1] : i;
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++) {
			if (random_below(100) >= gaps)
				set_add(problem_domain(p, i), v);
			p->weight[i * m + v] = random_below(100) < weights;
		}
		for (unsigned int j = 0; j < n; j++)
			p->kind[i * n + j] = i != j && clique[i] == clique[j];
	}
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (room[a] == room[b])
				set_add(problem_row(p, 1, a), b);
		}
	}
}

static void assign_agrees_with_brute_force_on_cliques(void **arg)
{
	uint64_t rounds = number_from_env("ASSIGN_ROUNDS", ROUNDS) / 4;

	(void)arg;
	random_state = number_from_env("ASSIGN_SEED", (uint64_t)time(NULL)) + 1;
	for (uint64_t round = 0; round < rounds; round++) {
		struct problem p;

		random_cliques(&p);
		compare_with_oracle(&p, round);
		problem_done(&p);
	}
}

/* n things in cliques of "clique", m places in cliques of "room". */
static void clique_problem(struct problem *p, unsigned int n, unsigned int clique, unsigned int m, unsigned int room)
{
	assert_int_equal(problem_init(p, n, m, 2), 0);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++)
			set_add(problem_domain(p, i), v);
		for (unsigned int j = 0; j < n; j++)
			p->kind[i * n + j] = i != j && i / clique == j / clique;
	}
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (a != b && a / room == b / room)
				set_add(problem_row(p, 1, a), b);
		}
	}
}

static void assign_packs_cliques_that_just_fit(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	clique_problem(&p, 48, 3, 64, 8); /* 16 of 3: two in each room */
	assert_int_equal(assign_solve(&p, LIMIT, &result), 0);
	for (unsigned int i = 0; i < 48; i++)
		assert_int_equal(result.place[i] / 8, result.place[i / 3 * 3] / 8);
	problem_done(&p);
}

/* Rooms of 8 and one of 7: what failed with the one must not count for the other. */
static void assign_tells_rooms_of_different_size_apart(void **arg)
{
	static const unsigned int sizes[] = { 3, 3, 5, 5, 2, 3, 4 };
	struct problem p;
	struct assignment result;
	unsigned int at = 0;

	(void)arg;
	clique_problem(&p, 25, 25, 26, 26);
	memset(p.kind, 0, sizeof(*p.kind) * 25 * 25);
	for (unsigned int k = 0; k < ARRAY_SIZE(sizes); at += sizes[k++]) {
		for (unsigned int i = at; i < at + sizes[k]; i++) {
			for (unsigned int j = at; j < at + sizes[k]; j++)
				p.kind[i * 25 + j] = i != j;
		}
	}
	/* Rooms of 8, 8, 10: 3 + 5, 3 + 5, 2 + 3 + 4 and one place left. */
	memset(p.row, 0, sizeof(*p.row) * 2 * 26);
	for (unsigned int a = 0; a < 26; a++) {
		for (unsigned int b = 0; b < 26; b++) {
			if (a != b && (a < 16 ? a / 8 == b / 8 : b >= 16))
				set_add(problem_row(&p, 1, a), b);
		}
	}
	assert_int_equal(assign_solve(&p, LIMIT, &result), 0);
	problem_done(&p);
}

/*
 * Two places that are bound to each other (X) and two that are so in another way
 * (Y) look the same from outside: all are bound to the two of Z. Leaving two of X
 * free is not leaving two of Y free. With "odd", a single place looks so, too.
 */
static void solve_pairs_of_two_kinds(bool odd)
{
	unsigned int x = odd, y = x + 2, z = y + 2, m = z + 2, n = odd ? 6 : 5;
	struct problem p;
	struct assignment result;

	assert_int_equal(problem_init(&p, n, m, 3), 0);
	set_add(problem_row(&p, 2, y), y + 1);
	set_add(problem_row(&p, 2, y + 1), y);
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (a != b && (a >= z || b >= z || (a >= x && a < y && b >= x && b < y)))
				set_add(problem_row(&p, 1, a), b);
		}
	}
	/* Things 0 and 1 are on Z; 2 is bound to them; with "odd", 3 is to none; the last two are to each other. */
	set_add(problem_domain(&p, 0), z);
	set_add(problem_domain(&p, 1), z + 1);
	for (unsigned int i = 2; i < n; i++) {
		for (unsigned int v = 0; v < (i < n - 2 ? z : m); v++)
			set_add(problem_domain(&p, i), v);
	}
	p.kind[2] = p.kind[n + 2] = p.kind[2 * n] = p.kind[2 * n + 1] = 1;
	p.kind[(n - 2) * n + n - 1] = p.kind[(n - 1) * n + n - 2] = 1;
	assert_int_equal(assign_solve(&p, LIMIT, &result), 0);
	assert_int_equal(result.place[n - 2], x);
	assert_int_equal(result.place[n - 1], x + 1);
	problem_done(&p);
}

static void assign_tells_bound_places_from_unbound_ones(void **arg)
{
	(void)arg;
	solve_pairs_of_two_kinds(false);
	solve_pairs_of_two_kinds(true);
}

static void assign_proves_that_cliques_do_not_fit(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	clique_problem(&p, 9, 3, 10, 5); /* 3 of 3: places enough, but not in rooms of 5 */
	assert_int_equal(assign_solve(&p, LIMIT, &result), -ENODEV);
	assert_false(result.crowded);
	problem_done(&p);
}

static void assign_names_the_crowd(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	assert_int_equal(problem_init(&p, 4, 5, 1), 0);
	for (unsigned int i = 0; i < 3; i++) {
		set_add(problem_domain(&p, i), 1);
		set_add(problem_domain(&p, i), 3);
	}
	set_add(problem_domain(&p, 3), 4);
	assert_int_equal(assign_solve(&p, LIMIT, &result), -ENODEV);
	assert_true(result.crowded);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(result.in_crowd[i], i < 3);
	for (unsigned int v = 0; v < 5; v++)
		assert_int_equal(result.crowd_room[v], v == 1 || v == 3);
	problem_done(&p);
}

/* The thing with the fewest places chooses first; each takes its heaviest, of equal ones the lowest. */
static void assign_tries_heavy_places_first(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	assert_int_equal(problem_init(&p, 3, 4, 1), 0);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int v = 0; v < 4 - i; v++)
			set_add(problem_domain(&p, i), v);
	*problem_weight(&p, 2, 1) = 1;
	*problem_weight(&p, 0, 3) = *problem_weight(&p, 0, 1) = 2;
	assert_int_equal(assign_solve(&p, LIMIT, &result), 0);
	assert_int_equal(result.place[2], 1);
	assert_int_equal(result.place[1], 0);
	assert_int_equal(result.place[0], 3);
	problem_done(&p);
}

static void assign_stops_at_its_limit(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	clique_problem(&p, 51, 3, 64, 8);
	assert_int_equal(assign_solve(&p, 10, &result), -E2BIG);
	problem_done(&p);
}

static void assign_of_nothing_is_done(void **arg)
{
	struct problem p;
	struct assignment result;

	(void)arg;
	assert_int_equal(problem_init(&p, 0, 3, 1), 0);
	assert_int_equal(assign_solve(&p, LIMIT, &result), 0);
	problem_done(&p);
}

static void assign_refuses_sizes_beyond_its_bounds(void **arg)
{
	struct problem p;

	(void)arg;
	assert_int_equal(problem_init(&p, PROBLEM_MAX + 1, PROBLEM_MAX, 1), -E2BIG);
	assert_int_equal(problem_init(&p, 1, PROBLEM_MAX + 1, 1), -E2BIG);
	assert_int_equal(problem_init(&p, 1, 1, PROBLEM_MAX_KINDS + 1), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assign_agrees_with_brute_force),
		cmocka_unit_test(assign_agrees_with_brute_force_on_cliques),
		cmocka_unit_test(assign_packs_cliques_that_just_fit),
		cmocka_unit_test(assign_tells_rooms_of_different_size_apart),
		cmocka_unit_test(assign_tells_bound_places_from_unbound_ones),
		cmocka_unit_test(assign_proves_that_cliques_do_not_fit),
		cmocka_unit_test(assign_names_the_crowd),
		cmocka_unit_test(assign_tries_heavy_places_first),
		cmocka_unit_test(assign_stops_at_its_limit),
		cmocka_unit_test(assign_of_nothing_is_done),
		cmocka_unit_test(assign_refuses_sizes_beyond_its_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
