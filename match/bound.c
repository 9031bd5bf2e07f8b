// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: how much weight a remainder can still bring, seen group by group.
 *
 * A matching knows that each place is used once, but not that things which
 * belong together have to stay together. Here it is the other way round: things
 * are grouped around a centre, and for each place of the centre it is known
 * what the group can have at best. The search uses the smaller of both bounds.
 */
#include "match/assign_internal.h"
#include "amdgpu_plugin_util.h"

struct group_bound {
	const struct assign_problem *p;
	unsigned int words;
	unsigned int n_groups;
	uint16_t centre[ASSIGN_MAX];   /* of each group */
	uint16_t group_of[ASSIGN_MAX]; /* of each thing */
	int64_t *best;		       /* [group][place of the centre]: weight of the whole group */
};

static uint32_t heaviest(const struct group_bound *gb, unsigned int thing, const uint64_t *domain, const uint64_t *row)
{
	const uint32_t *weight = gb->p->weight + (size_t)thing * gb->p->m;
	uint32_t best = 0;

	for (unsigned int w = 0; w < gb->words; w++) {
		uint64_t left = domain[w] & (row ? row[w] : UINT64_MAX);

		for (; left; left &= left - 1) {
			uint32_t found = weight[w * 64 + (unsigned int)__builtin_ctzll(left)];

			best = found > best ? found : best;
		}
	}
	return best;
}

/* Number of pairs of places that a kind allows: few is tight. */
static void measure_kinds(const struct assign_problem *p, uint32_t *n_pairs)
{
	for (unsigned int kind = 0; kind < p->n_kinds; kind++) {
		n_pairs[kind] = 0;
		for (size_t w = 0; w < (size_t)p->m * ASSIGN_WORDS(p->m); w++)
			n_pairs[kind] += (uint32_t)__builtin_popcountll(assign_row(p, kind, 0)[w]);
	}
}

/* Each thing that has no group yet takes those that are bound to it most tightly. */
static void make_groups(struct group_bound *gb, const uint32_t *n_pairs)
{
	const struct assign_problem *p = gb->p;
	bool grouped[ASSIGN_MAX] = { false };

	for (unsigned int i = 0; i < p->n; i++) {
		const uint16_t *kind = p->kind + (size_t)i * p->n;
		uint32_t tightest = UINT32_MAX;

		if (grouped[i])
			continue;
		for (unsigned int j = 0; j < p->n; j++) {
			if (kind[j] && n_pairs[kind[j]] < tightest)
				tightest = n_pairs[kind[j]];
		}
		for (unsigned int j = 0; j < p->n; j++) {
			if (grouped[j] || (j != i && (!kind[j] || n_pairs[kind[j]] > tightest)))
				continue;
			grouped[j] = true;
			gb->group_of[j] = (uint16_t)gb->n_groups;
		}
		gb->centre[gb->n_groups++] = (uint16_t)i;
	}
}

static int64_t group_best(const struct group_bound *gb, const uint64_t *domain, unsigned int group, unsigned int place)
{
	const struct assign_problem *p = gb->p;
	unsigned int centre = gb->centre[group];
	int64_t sum = p->weight[(size_t)centre * p->m + place];

	for (unsigned int j = 0; j < p->n; j++) {
		unsigned int kind = p->kind[(size_t)centre * p->n + j];

		if (gb->group_of[j] == group && j != centre)
			sum += heaviest(gb, j, domain + (size_t)j * gb->words, assign_row(p, kind, place));
	}
	return sum;
}

struct group_bound *group_bound_new(const struct assign_problem *p, const uint64_t *domain)
{
	struct group_bound *gb = calloc(1, sizeof(*gb));
	uint32_t n_pairs[ASSIGN_MAX_KINDS];

	if (!gb)
		return NULL;
	gb->p = p;
	gb->words = ASSIGN_WORDS(p->m);
	measure_kinds(p, n_pairs);
	make_groups(gb, n_pairs);
	gb->best = calloc((size_t)gb->n_groups * p->m + 1, sizeof(*gb->best));
	if (!gb->best) {
		group_bound_free(gb);
		return NULL;
	}
	for (unsigned int group = 0; group < gb->n_groups; group++) {
		const uint64_t *set = domain + (size_t)gb->centre[group] * gb->words;
		unsigned int place;

		for_each_place(place, set, gb->words) gb->best[(size_t)group * p->m + place] =
			group_best(gb, domain, group, place);
	}
	return gb;
}

void group_bound_free(struct group_bound *gb)
{
	if (!gb)
		return;
	free(gb->best);
	free(gb);
}

/* Of a group of which nothing is placed. */
static int64_t untouched_best(const struct group_bound *gb, const uint64_t *domain, unsigned int group)
{
	const int64_t *best = gb->best + (size_t)group * gb->p->m;
	int64_t found = 0;
	unsigned int place;

	for_each_place(place, domain + (size_t)gb->centre[group] * gb->words, gb->words)
	{
		if (best[place] > found)
			found = best[place];
	}
	return found;
}

int64_t group_bound_get(const struct group_bound *gb, const uint64_t *domain, const int32_t *placed)
{
	bool touched[ASSIGN_MAX] = { false };
	int64_t sum = 0;

	for (unsigned int i = 0; i < gb->p->n; i++)
		touched[gb->group_of[i]] = touched[gb->group_of[i]] || placed[i] >= 0;
	for (unsigned int group = 0; group < gb->n_groups; group++) {
		if (!touched[group])
			sum += untouched_best(gb, domain, group);
	}
	for (unsigned int i = 0; i < gb->p->n; i++) {
		if (touched[gb->group_of[i]])
			sum += heaviest(gb, i, domain + (size_t)i * gb->words, NULL);
	}
	return sum;
}

bool group_untouched(const struct group_bound *gb, const int32_t *placed, unsigned int thing)
{
	unsigned int size = 0;

	for (unsigned int i = 0; i < gb->p->n; i++) {
		if (gb->group_of[i] != gb->group_of[thing])
			continue;
		if (placed[i] >= 0)
			return false;
		size++;
	}
	return size > 1;
}
