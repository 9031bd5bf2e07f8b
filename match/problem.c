// SPDX-License-Identifier: GPL-2.0-only
/*
 * The assignment problem: its memory and its sets.
 */
#include "match/problem.h"
#include "amdgpu_plugin_util.h"

int problem_init(struct problem *p, unsigned int nr_things, unsigned int nr_places, unsigned int nr_kinds)
{
	size_t words = (nr_places + 63) / 64;

	memset(p, 0, sizeof(*p));
	if (nr_things > PROBLEM_MAX || nr_places > PROBLEM_MAX || nr_kinds > PROBLEM_MAX_KINDS)
		return -E2BIG;
	p->nr_things = nr_things;
	p->nr_places = nr_places;
	p->nr_words = (unsigned int)words;
	p->nr_kinds = nr_kinds;
	/* One more than needed, so that NULL always means out of memory. */
	p->domain = calloc(nr_things * words + 1, sizeof(*p->domain));
	p->kind = calloc((size_t)nr_things * nr_things + 1, sizeof(*p->kind));
	p->row = calloc((size_t)nr_kinds * nr_places * words + 1, sizeof(*p->row));
	p->weight = calloc((size_t)nr_things * nr_places + 1, sizeof(*p->weight));
	if (p->domain && p->kind && p->row && p->weight)
		return 0;
	problem_done(p);
	return -ENOMEM;
}

void problem_done(struct problem *p)
{
	free(p->domain);
	free(p->kind);
	free(p->row);
	free(p->weight);
	memset(p, 0, sizeof(*p));
}

unsigned int set_count(const uint64_t *set, unsigned int nr_words)
{
	unsigned int count = 0;

	for (unsigned int w = 0; w < nr_words; w++)
		count += (unsigned int)__builtin_popcountll(set[w]);
	return count;
}

int set_next(const uint64_t *set, unsigned int nr_words, unsigned int from)
{
	uint64_t left;

	for (unsigned int w = from / 64; w < nr_words; w++) {
		left = w == from / 64 ? set[w] >> (from % 64) << (from % 64) : set[w];
		if (left)
			return (int)(w * 64) + __builtin_ctzll(left);
	}
	return -1;
}
