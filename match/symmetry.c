// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symmetry: machines are full of equal GPUs in equal hives. Trying one GPU of
 * a hive, and one of several untouched hives, is trying all of them.
 *
 * Each kind of restriction has its transposed kind in the problem, so equal
 * rows mean equal columns, too.
 */
#include "match/internal.h"

struct class
{
	unsigned int first;  /* lowest place */
	unsigned int second; /* the next one; first when there is none */
	unsigned int size;
	struct place_set members;
};

static bool same_domains(const struct problem *p, unsigned int a, unsigned int b)
{
	for (unsigned int i = 0; i < p->nr_things; i++)
		if (set_has(&p->domain[i], a) != set_has(&p->domain[i], b))
			return false;
	return true;
}

/* Are the rows of a and b equal outside of the sets x and y? */
static bool same_outside(const struct problem *p, unsigned int a, unsigned int b, const struct place_set *x,
			 const struct place_set *y)
{
	for (unsigned int kind = 1; kind < p->nr_kinds; kind++) {
		const struct place_set *row_a = &p->row[kind][a], *row_b = &p->row[kind][b];

		for (unsigned int w = 0; w < SET_WORDS; w++)
			if ((row_a->word[w] ^ row_b->word[w]) & ~(x->word[w] | y->word[w]))
				return false;
	}
	return true;
}

/* Do all kinds allow from_a -> to_a just when they allow from_b -> to_b? */
static bool same_pair(const struct problem *p, unsigned int from_a, unsigned int to_a, unsigned int from_b,
		      unsigned int to_b)
{
	for (unsigned int kind = 1; kind < p->nr_kinds; kind++)
		if (set_has(&p->row[kind][from_a], to_a) != set_has(&p->row[kind][from_b], to_b))
			return false;
	return true;
}

static bool interchangeable(const struct problem *p, unsigned int a, unsigned int b)
{
	struct place_set only_a = { 0 }, only_b = { 0 };

	set_add(&only_a, a);
	set_add(&only_b, b);
	return same_domains(p, a, b) && same_outside(p, a, b, &only_a, &only_b) && same_pair(p, a, b, b, a);
}

static bool swappable(const struct problem *p, const struct class *x, const struct class *y)
{
	return x->size == y->size && same_domains(p, x->first, y->first) &&
	       same_outside(p, x->first, y->first, &x->members, &y->members) &&
	       (x->size == 1 || same_pair(p, x->first, x->second, y->first, y->second)) &&
	       same_pair(p, x->first, y->first, y->first, x->first);
}

static void find_classes(struct symmetry *sym, const struct problem *p, struct class *classes)
{
	for (unsigned int place = 0; place < p->nr_places; place++) {
		unsigned int c = 0;

		while (c < sym->nr_classes && !interchangeable(p, classes[c].first, place))
			c++;
		if (c == sym->nr_classes) {
			classes[c] = (struct class){ .first = place, .second = place };
			sym->nr_classes++;
		} else if (classes[c].size == 1) {
			classes[c].second = place;
		}
		classes[c].size++;
		set_add(&classes[c].members, place);
		sym->class_of[place] = (uint16_t)c;
	}
}

void symmetry_find(struct symmetry *ret, const struct problem *p)
{
	struct class classes[PROBLEM_MAX];
	uint16_t lead[PROBLEM_MAX];
	unsigned int nr_groups = 0;

	ret->nr_classes = 0;
	find_classes(ret, p, classes);
	for (unsigned int c = 0; c < ret->nr_classes; c++) {
		unsigned int group = 0;

		while (group < nr_groups && !swappable(p, &classes[lead[group]], &classes[c]))
			group++;
		if (group == nr_groups)
			lead[nr_groups++] = (uint16_t)c;
		ret->group_of[c] = (uint16_t)group;
	}
}
