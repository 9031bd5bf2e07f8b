// SPDX-License-Identifier: GPL-2.0-only
/*
 * The assignment search against brute force, and cases that are hard for a
 * search without symmetry.
 *
 * ASSIGN_SEED chooses the random problems, ASSIGN_ROUNDS how many.
 */
#include <inttypes.h>
#include <time.h>

#include "unit.h"
#include "match/internal.h"

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

static struct problem *new_problem(unsigned int nr_things, unsigned int nr_places, unsigned int nr_kinds)
{
	struct problem *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->nr_things = nr_things;
	p->nr_places = nr_places;
	p->nr_kinds = nr_kinds;
	return p;
}

/* Whether there is an assignment, by trying all. */
struct oracle {
	const struct problem *p;
	int place[PROBLEM_MAX];
};

static bool oracle_allows(const struct oracle *o, unsigned int thing, unsigned int place)
{
	if (!set_has(&o->p->domain[thing], place))
		return false;
	for (unsigned int i = 0; i < thing; i++) {
		unsigned int kind = o->p->kind[i][thing];

		if (o->place[i] == (int)place)
			return false;
		if (kind && !set_has(&o->p->row[kind][o->place[i]], place))
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
				set_add(&p->row[kind][a], b);
				set_add(&p->row[kind + 1][b], a);
			}
		}
	}
}

static struct problem *random_problem(void)
{
	unsigned int m = 1 + random_below(6), n = 1 + random_below(m);
	uint32_t domain_percent = 50 + random_below(51), wish_percent = random_below(60);
	uint32_t kind_percent = random_below(101);
	struct problem *p = new_problem(n, m, 1 + 2 * random_below(3));

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++) {
			if (random_below(100) < domain_percent)
				set_add(&p->domain[i], v);
			if (random_below(100) < wish_percent)
				set_add(&p->wish[random_below(PROBLEM_WISHES)][i], v);
		}
	}
	random_rows(p, 30 + random_below(71));
	for (unsigned int i = 0; p->nr_kinds > 1 && i < n; i++) {
		for (unsigned int j = i + 1; j < n; j++) {
			unsigned int kind = 1 + random_below(p->nr_kinds - 1);

			if (random_below(100) >= kind_percent)
				continue;
			p->kind[i][j] = (uint8_t)kind;
			p->kind[j][i] = (uint8_t)(((kind - 1) ^ 1) + 1);
		}
	}
	return p;
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

TEST(assign_agrees_with_brute_force)
{
	uint64_t seed = number_from_env("ASSIGN_SEED", (uint64_t)time(NULL));
	uint64_t rounds = number_from_env("ASSIGN_ROUNDS", ROUNDS);

	print_message("ASSIGN_SEED=%" PRIu64 " ASSIGN_ROUNDS=%" PRIu64 "\n", seed, rounds);
	random_state = seed;
	for (uint64_t round = 0; round < rounds; round++) {
		_cleanup_free_ struct problem *p = random_problem();

		compare_with_oracle(p, round);
	}
}

/* Cliques of random sizes on both sides; places of one clique are alike, unless a wish or a gap tells them apart. */
static struct problem *random_cliques(void)
{
	unsigned int m = 6 + random_below(3), n = 4 + random_below(3), room[PROBLEM_MAX], clique[PROBLEM_MAX];
	uint32_t gaps = random_below(3) ? 0 : 15, wishes = random_below(2) ? 0 : 10;
	struct problem *p = new_problem(n, m, 2);

	for (unsigned int v = 0; v < m; v++)
		room[v] = v && random_below(3) ? room[v - 1] : v;
	for (unsigned int i = 0; i < n; i++)
		clique[i] = i && random_below(2) ? clique[i - 1] : i;
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++) {
			if (random_below(100) >= gaps)
				set_add(&p->domain[i], v);
			if (random_below(100) < wishes)
				set_add(&p->wish[0][i], v);
		}
		for (unsigned int j = 0; j < n; j++)
			p->kind[i][j] = i != j && clique[i] == clique[j];
	}
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (room[a] == room[b])
				set_add(&p->row[1][a], b);
		}
	}
	return p;
}

TEST(assign_agrees_with_brute_force_on_cliques)
{
	uint64_t rounds = number_from_env("ASSIGN_ROUNDS", ROUNDS) / 4;

	random_state = number_from_env("ASSIGN_SEED", (uint64_t)time(NULL)) + 1;
	for (uint64_t round = 0; round < rounds; round++) {
		_cleanup_free_ struct problem *p = random_cliques();

		compare_with_oracle(p, round);
	}
}

/* n things in cliques of "clique", m places in cliques of "room". */
static struct problem *clique_problem(unsigned int n, unsigned int clique, unsigned int m, unsigned int room)
{
	struct problem *p = new_problem(n, m, 2);

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int v = 0; v < m; v++)
			set_add(&p->domain[i], v);
		for (unsigned int j = 0; j < n; j++)
			p->kind[i][j] = i != j && i / clique == j / clique;
	}
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (a != b && a / room == b / room)
				set_add(&p->row[1][a], b);
		}
	}
	return p;
}

TEST(assign_packs_cliques_that_just_fit)
{
	_cleanup_free_ struct problem *p = clique_problem(48, 3, 64, 8);
	struct assignment result;

	/* 16 of 3: two in each room */
	assert_int_equal(assign_solve(p, LIMIT, &result), 0);
	for (unsigned int i = 0; i < 48; i++)
		assert_int_equal(result.place[i] / 8, result.place[i / 3 * 3] / 8);
}

/* Rooms of 8 and one of 7: what failed with the one must not count for the other. */
TEST(assign_tells_rooms_of_different_size_apart)
{
	static const unsigned int sizes[] = { 3, 3, 5, 5, 2, 3, 4 };
	_cleanup_free_ struct problem *p = clique_problem(25, 25, 26, 26);
	struct assignment result;
	unsigned int at = 0;

	memset(p->kind, 0, sizeof(p->kind));
	for (unsigned int k = 0; k < ARRAY_SIZE(sizes); at += sizes[k++]) {
		for (unsigned int i = at; i < at + sizes[k]; i++) {
			for (unsigned int j = at; j < at + sizes[k]; j++)
				p->kind[i][j] = i != j;
		}
	}
	/* Rooms of 8, 8, 10: 3 + 5, 3 + 5, 2 + 3 + 4 and one place left. */
	memset(p->row[1], 0, sizeof(p->row[1]));
	for (unsigned int a = 0; a < 26; a++) {
		for (unsigned int b = 0; b < 26; b++) {
			if (a != b && (a < 16 ? a / 8 == b / 8 : b >= 16))
				set_add(&p->row[1][a], b);
		}
	}
	assert_int_equal(assign_solve(p, LIMIT, &result), 0);
}

/*
 * Two places that are bound to each other (X) and two that are so in another way
 * (Y) look the same from outside: all are bound to the two of Z. Leaving two of X
 * free is not leaving two of Y free. With "odd", a single place looks so, too.
 */
static void solve_pairs_of_two_kinds(bool odd)
{
	unsigned int x = odd, y = x + 2, z = y + 2, m = z + 2, n = odd ? 6 : 5;
	_cleanup_free_ struct problem *p = new_problem(n, m, 3);
	struct assignment result;

	set_add(&p->row[2][y], y + 1);
	set_add(&p->row[2][y + 1], y);
	for (unsigned int a = 0; a < m; a++) {
		for (unsigned int b = 0; b < m; b++) {
			if (a != b && (a >= z || b >= z || (a >= x && a < y && b >= x && b < y)))
				set_add(&p->row[1][a], b);
		}
	}
	/* Things 0 and 1 are on Z; 2 is bound to them; with "odd", 3 is to none; the last two are to each other. */
	set_add(&p->domain[0], z);
	set_add(&p->domain[1], z + 1);
	for (unsigned int i = 2; i < n; i++) {
		for (unsigned int v = 0; v < (i < n - 2 ? z : m); v++)
			set_add(&p->domain[i], v);
	}
	p->kind[0][2] = p->kind[1][2] = p->kind[2][0] = p->kind[2][1] = 1;
	p->kind[n - 2][n - 1] = p->kind[n - 1][n - 2] = 1;
	assert_int_equal(assign_solve(p, LIMIT, &result), 0);
	assert_int_equal(result.place[n - 2], x);
	assert_int_equal(result.place[n - 1], x + 1);
}

TEST(assign_tells_bound_places_from_unbound_ones)
{
	solve_pairs_of_two_kinds(false);
	solve_pairs_of_two_kinds(true);
}

TEST(assign_proves_that_cliques_do_not_fit)
{
	_cleanup_free_ struct problem *p = clique_problem(9, 3, 10, 5);
	struct assignment result;

	/* 3 of 3: places enough, but not in rooms of 5 */
	assert_int_equal(assign_solve(p, LIMIT, &result), -ENODEV);
	assert_false(result.crowded);
}

TEST(assign_names_the_crowd)
{
	_cleanup_free_ struct problem *p = new_problem(4, 5, 1);
	struct assignment result;

	for (unsigned int i = 0; i < 3; i++) {
		set_add(&p->domain[i], 1);
		set_add(&p->domain[i], 3);
	}
	set_add(&p->domain[3], 4);
	assert_int_equal(assign_solve(p, LIMIT, &result), -ENODEV);
	assert_true(result.crowded);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(result.in_crowd[i], i < 3);
	for (unsigned int v = 0; v < 5; v++)
		assert_int_equal(result.crowd_room[v], v == 1 || v == 3);
}

/* The thing with the fewest places chooses first; each takes the place that it wishes most, of equal ones the lowest. */
TEST(assign_tries_wishes_first)
{
	_cleanup_free_ struct problem *p = new_problem(3, 4, 1);
	struct assignment result;

	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int v = 0; v < 4 - i; v++)
			set_add(&p->domain[i], v);
	set_add(&p->wish[3][2], 1);
	set_add(&p->wish[2][0], 3);
	set_add(&p->wish[2][0], 1);
	assert_int_equal(assign_solve(p, LIMIT, &result), 0);
	assert_int_equal(result.place[2], 1);
	assert_int_equal(result.place[1], 0);
	assert_int_equal(result.place[0], 3);
}

TEST(assign_stops_at_its_limit)
{
	_cleanup_free_ struct problem *p = clique_problem(51, 3, 64, 8);
	struct assignment result;

	assert_int_equal(assign_solve(p, 10, &result), -E2BIG);
}

TEST(assign_of_nothing_is_done)
{
	_cleanup_free_ struct problem *p = new_problem(0, 3, 1);
	struct assignment result;

	assert_int_equal(assign_solve(p, LIMIT, &result), 0);
}

UNIT_MAIN(NULL, NULL)
