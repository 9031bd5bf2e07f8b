// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: thins out the domains before the search.
 *
 * A thing may only go where those that it restricts can go around it, all at
 * once: a hive of eight does not start in a hive of six. Done until nothing
 * changes; this settles most impossible cases without any search.
 */
#include "match/assign_internal.h"
#include "amdgpu_plugin_util.h"

#define WORDS_MAX ASSIGN_WORDS(ASSIGN_MAX)

/* What making and matching one set costs, in the steps of the search. */
#define STEPS_PER_SET 4

/* Sets that each get a place of their own, one after the other. */
struct matching {
	unsigned int words;
	unsigned int n;
	uint64_t set[ASSIGN_MAX][WORDS_MAX];
	int32_t owner[ASSIGN_MAX]; /* of each place, valid where it is in taken */
	uint64_t taken[WORDS_MAX];
	uint64_t visited[WORDS_MAX];
	uint64_t work;
};

static void matching_reset(struct matching *m, unsigned int words)
{
	m->words = words;
	m->n = 0;
	memset(m->taken, 0, sizeof(m->taken));
}

static bool take_free_place(struct matching *m, unsigned int at)
{
	for (unsigned int w = 0; w < m->words; w++) {
		uint64_t open = m->set[at][w] & ~m->taken[w];

		if (open) {
			unsigned int place = w * 64 + (unsigned int)__builtin_ctzll(open);

			assign_set_add(m->taken, place);
			m->owner[place] = (int32_t)at;
			return true;
		}
	}
	return false;
}

/* Finds a place, moving others. As deep as there are sets at most: each place is visited once. */
static bool find_place(struct matching *m, unsigned int at)
{
	m->work += m->words;
	if (take_free_place(m, at))
		return true;
	for (unsigned int w = 0; w < m->words; w++) {
		uint64_t open;

		while ((open = m->set[at][w] & ~m->visited[w])) {
			unsigned int place = w * 64 + (unsigned int)__builtin_ctzll(open);

			assign_set_add(m->visited, place);
			if (find_place(m, (unsigned int)m->owner[place])) {
				m->owner[place] = (int32_t)at;
				return true;
			}
		}
	}
	return false;
}

static bool matching_add(struct matching *m, const uint64_t *set)
{
	memcpy(m->set[m->n], set, m->words * sizeof(*set));
	memset(m->visited, 0, sizeof(m->visited));
	return find_place(m, m->n++);
}

/* The things that a thing is bound to. */
struct neighbours {
	unsigned int n;
	uint16_t thing[ASSIGN_MAX];
	uint16_t kind[ASSIGN_MAX];
};

static void find_neighbours(const struct assign_problem *p, unsigned int thing, struct neighbours *ret)
{
	const uint16_t *kind = p->kind + (size_t)thing * p->n;

	ret->n = 0;
	for (unsigned int j = 0; j < p->n; j++) {
		if (j == thing || !kind[j])
			continue;
		ret->thing[ret->n] = (uint16_t)j;
		ret->kind[ret->n++] = kind[j];
	}
}

/* Can all of them be placed when the thing in the middle is on this place? */
static bool neighbours_fit(const struct assign_problem *p, const uint64_t *domain, struct matching *m,
			   const struct neighbours *around, unsigned int place)
{
	unsigned int words = ASSIGN_WORDS(p->m);

	matching_reset(m, words);
	for (unsigned int i = 0; i < around->n; i++) {
		const uint64_t *row = assign_row(p, around->kind[i], place);
		const uint64_t *other = domain + (size_t)around->thing[i] * words;
		uint64_t set[WORDS_MAX];

		for (unsigned int w = 0; w < words; w++)
			set[w] = other[w] & row[w];
		assign_set_remove(set, place);
		m->work += STEPS_PER_SET * words;
		if (!matching_add(m, set))
			return false;
	}
	return true;
}

/* Removes the places of one class together: what holds for one of them holds for all. */
static bool filter_thing(const struct assign_problem *p, uint64_t *domain, const struct symmetry *sym,
			 struct matching *m, unsigned int thing)
{
	uint64_t *own = domain + (size_t)thing * ASSIGN_WORDS(p->m);
	bool known[ASSIGN_MAX] = { false }, fits[ASSIGN_MAX];
	uint64_t before[WORDS_MAX];
	struct neighbours around;
	bool changed = false;
	unsigned int place;

	find_neighbours(p, thing, &around);
	if (!around.n)
		return false;
	memcpy(before, own, ASSIGN_WORDS(p->m) * sizeof(*own));
	for_each_place(place, before, ASSIGN_WORDS(p->m))
	{
		unsigned int class = symmetry_class(sym, place);

		if (!known[class])
			fits[class] = neighbours_fit(p, domain, m, &around, place);
		known[class] = true;
		if (!fits[class]) {
			assign_set_remove(own, place);
			changed = true;
		}
	}
	return changed;
}

int assign_filter(const struct assign_problem *p, uint64_t *domain, const struct symmetry *sym, uint64_t *work,
		  uint64_t limit, int *ret_thing)
{
	_cleanup_free_ struct matching *m = malloc(sizeof(*m));
	bool changed = true;

	if (!m)
		return -ENOMEM;
	m->work = 0;
	while (changed && m->work < limit) {
		changed = false;
		for (unsigned int i = 0; i < p->n; i++) {
			if (!filter_thing(p, domain, sym, m, i))
				continue;
			changed = true;
			if (assign_set_empty(domain + (size_t)i * ASSIGN_WORDS(p->m), ASSIGN_WORDS(p->m))) {
				*ret_thing = (int)i;
				return -ENODEV;
			}
		}
	}
	*work += m->work;
	return 0;
}
