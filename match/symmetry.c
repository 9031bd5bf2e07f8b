// SPDX-License-Identifier: GPL-2.0-only
/*
 * Assignment: interchangeable places, and a memory of what failed.
 *
 * Machines are full of equal GPUs in equal hives. Places that no rule tells
 * apart form a class; classes that can be swapped as a whole form a group. A
 * remainder of the search is written down as, per group, the sorted list of
 * its classes' (free places, things that may go there): two remainders with
 * one description differ in the names of places only.
 */
#include "match/assign_internal.h"
#include "amdgpu_plugin_util.h"

/* Memory for failures. Where these do not suffice, the search is on its own again. */
#define SLOTS_MIN	256U
#define SLOTS_MAX	(1U << 16)
#define ARENA_WORDS_MIN ((size_t)1 << 10)
#define ARENA_WORDS_MAX ((size_t)1 << 21)

struct slot {
	uint32_t hash;
	uint32_t at; /* start of the key in the arena, plus 1; 0: slot is free */
	int64_t need;
};

struct symmetry {
	const struct assign_problem *p;
	unsigned int words;	  /* of a set of places */
	unsigned int thing_words; /* of a set of things */
	bool weighted;
	bool none; /* no two places are alike: a remainder is described by its domains as they are */
	unsigned int n_classes;
	uint16_t class_of[ASSIGN_MAX];
	uint16_t first[ASSIGN_MAX]; /* of each class: lowest place */
	uint16_t size[ASSIGN_MAX];  /* of each class */
	uint64_t members[ASSIGN_MAX][ASSIGN_WORDS(ASSIGN_MAX)];
	uint16_t group_of[ASSIGN_MAX]; /* of each class */
	uint16_t by_group[ASSIGN_MAX]; /* classes in the order of their groups */
	/* Failures: a hash table, half full at most, of keys that lie in the arena. */
	unsigned int n_keys;
	unsigned int n_slots; /* power of 2; 0 until the first failure */
	struct slot *slots;
	size_t key_words;
	size_t arena_used;
	size_t arena_words;
	uint64_t *arena;
	uint64_t *key; /* being built */
};

static bool same_domains(const struct symmetry *sym, const uint64_t *domain, unsigned int a, unsigned int b)
{
	const struct assign_problem *p = sym->p;

	for (unsigned int i = 0; i < p->n; i++) {
		const uint64_t *set = domain + (size_t)i * sym->words;
		const uint32_t *weight = p->weight + (size_t)i * p->m;

		if (assign_set_has(set, a) != assign_set_has(set, b))
			return false;
		if (sym->weighted && weight[a] != weight[b])
			return false;
	}
	return true;
}

/* Are the rows equal outside of the sets x and y? */
static bool same_rows_outside(const struct symmetry *sym, unsigned int a, unsigned int b, const uint64_t *x,
			      const uint64_t *y)
{
	for (unsigned int kind = 1; kind < sym->p->n_kinds; kind++) {
		const uint64_t *row_a = assign_row(sym->p, kind, a);
		const uint64_t *row_b = assign_row(sym->p, kind, b);

		for (unsigned int w = 0; w < sym->words; w++) {
			if ((row_a[w] ^ row_b[w]) & ~(x[w] | y[w]))
				return false;
		}
	}
	return true;
}

static bool same_row_bit(const struct symmetry *sym, unsigned int from_a, unsigned int to_a, unsigned int from_b,
			 unsigned int to_b)
{
	for (unsigned int kind = 1; kind < sym->p->n_kinds; kind++) {
		if (assign_set_has(assign_row(sym->p, kind, from_a), to_a) !=
		    assign_set_has(assign_row(sym->p, kind, from_b), to_b))
			return false;
	}
	return true;
}

/* Every kind has its transposed one, so equal rows mean equal columns, too. */
static bool interchangeable(const struct symmetry *sym, const uint64_t *domain, unsigned int a, unsigned int b)
{
	uint64_t set_a[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 }, set_b[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 };

	assign_set_add(set_a, a);
	assign_set_add(set_b, b);
	return same_domains(sym, domain, a, b) && same_rows_outside(sym, a, b, set_a, set_b) &&
	       same_row_bit(sym, a, b, b, a);
}

static void find_classes(struct symmetry *sym, const uint64_t *domain)
{
	for (unsigned int place = 0; place < sym->p->m; place++) {
		unsigned int class = 0;

		while (class < sym->n_classes && !interchangeable(sym, domain, sym->first[class], place))
			class ++;
		if (class == sym->n_classes)
			sym->first[sym->n_classes++] = (uint16_t)place;
		sym->class_of[place] = (uint16_t) class;
		sym->size[class]++;
		assign_set_add(sym->members[class], place);
	}
}

/* Lowest member but the first; the first when it is the only one. */
static unsigned int second_member(const struct symmetry *sym, unsigned int class)
{
	unsigned int place, found = sym->first[class];

	for_each_place(place, sym->members[class], sym->words)
	{
		if (place != sym->first[class])
			return place;
	}
	return found;
}

static bool swappable(const struct symmetry *sym, const uint64_t *domain, unsigned int x, unsigned int y)
{
	unsigned int a = sym->first[x], b = sym->first[y];

	/* Of classes of one place it cannot be said whether their places are bound to each other. */
	if ((sym->size[x] > 1) != (sym->size[y] > 1))
		return false;
	if (!same_domains(sym, domain, a, b) || !same_rows_outside(sym, a, b, sym->members[x], sym->members[y]))
		return false;
	if (sym->size[x] > 1 && !same_row_bit(sym, a, second_member(sym, x), b, second_member(sym, y)))
		return false;
	return same_row_bit(sym, a, b, b, a);
}

static void find_groups(struct symmetry *sym, const uint64_t *domain)
{
	uint16_t lead[ASSIGN_MAX];
	unsigned int n_groups = 0, n = 0;

	for (unsigned int class = 0; class < sym->n_classes; class ++) {
		unsigned int group = 0;

		while (group < n_groups && !swappable(sym, domain, lead[group], class))
			group++;
		if (group == n_groups)
			lead[n_groups++] = (uint16_t) class;
		sym->group_of[class] = (uint16_t)group;
	}
	sym->none = n_groups == sym->p->m;
	for (unsigned int group = 0; group < n_groups; group++) {
		for (unsigned int class = 0; class < sym->n_classes; class ++) {
			if (sym->group_of[class] == group)
				sym->by_group[n++] = (uint16_t) class;
		}
	}
}

void symmetry_free(struct symmetry *sym)
{
	if (!sym)
		return;
	free(sym->slots);
	free(sym->arena);
	free(sym->key);
	free(sym);
}

struct symmetry *symmetry_new(const struct assign_problem *p, const uint64_t *domain, bool weighted)
{
	struct symmetry *sym = calloc(1, sizeof(*sym));

	if (!sym)
		return NULL;
	sym->p = p;
	sym->words = ASSIGN_WORDS(p->m);
	sym->thing_words = (p->n + 63) / 64;
	sym->weighted = weighted;
	find_classes(sym, domain);
	find_groups(sym, domain);
	sym->key_words = sym->none ? (size_t)p->n * sym->words : (size_t)sym->n_classes * (1 + sym->thing_words);
	sym->key = calloc(sym->key_words + 1, sizeof(*sym->key));
	if (!sym->key) {
		symmetry_free(sym);
		return NULL;
	}
	return sym;
}

unsigned int symmetry_class(const struct symmetry *sym, unsigned int place)
{
	return sym->class_of[place];
}

/* One class: number of free places, then the set of unplaced things that may go there. */
static void describe_class(const struct symmetry *sym, unsigned int class, const uint64_t *domain,
			   const int32_t *placed, const uint64_t *taken, uint64_t *entry)
{
	uint64_t free_places[ASSIGN_WORDS(ASSIGN_MAX)];
	unsigned int count = 0, place = 0;

	memset(entry, 0, sizeof(*entry) * (1 + sym->thing_words));
	for (unsigned int w = 0; w < sym->words; w++) {
		free_places[w] = sym->members[class][w] & ~taken[w];
		count += (unsigned int)__builtin_popcountll(free_places[w]);
	}
	if (!count)
		return;
	for (unsigned int w = sym->words; w-- > 0;) {
		if (free_places[w])
			place = w * 64 + (unsigned int)__builtin_ctzll(free_places[w]);
	}
	entry[0] = count;
	for (unsigned int i = 0; i < sym->p->n; i++) {
		if (placed[i] < 0 && assign_set_has(domain + (size_t)i * sym->words, place))
			entry[1 + i / 64] |= 1ULL << (i % 64);
	}
}

/* Insertion sort of the last entry among those of its group. */
static void sort_in(uint64_t *entries, unsigned int last, size_t entry_words)
{
	size_t size = entry_words * sizeof(*entries);
	uint64_t moved[1 + ASSIGN_WORDS(ASSIGN_MAX)];
	unsigned int to = last;

	memcpy(moved, entries + last * entry_words, size);
	while (to > 0 && memcmp(entries + (to - 1) * entry_words, moved, size) > 0) {
		memcpy(entries + to * entry_words, entries + (to - 1) * entry_words, size);
		to--;
	}
	memcpy(entries + to * entry_words, moved, size);
}

static void copy_domains(struct symmetry *sym, const uint64_t *domain, const int32_t *placed)
{
	size_t size = sym->words * sizeof(*domain);

	for (unsigned int i = 0; i < sym->p->n; i++) {
		if (placed[i] < 0)
			memcpy(sym->key + (size_t)i * sym->words, domain + (size_t)i * sym->words, size);
		else
			memset(sym->key + (size_t)i * sym->words, 0, size);
	}
}

static void describe_classes(struct symmetry *sym, const uint64_t *domain, const int32_t *placed)
{
	uint64_t taken[ASSIGN_WORDS(ASSIGN_MAX)] = { 0 };
	size_t entry_words = 1 + sym->thing_words;
	unsigned int group_start = 0;

	for (unsigned int i = 0; i < sym->p->n; i++) {
		if (placed[i] >= 0)
			assign_set_add(taken, (unsigned int)placed[i]);
	}
	for (unsigned int at = 0; at < sym->n_classes; at++) {
		unsigned int class = sym->by_group[at];

		if (at && sym->group_of[class] != sym->group_of[sym->by_group[at - 1]])
			group_start = at;
		describe_class(sym, class, domain, placed, taken, sym->key + at * entry_words);
		sort_in(sym->key + group_start * entry_words, at - group_start, entry_words);
	}
}

static void build_key(struct symmetry *sym, const uint64_t *domain, const int32_t *placed)
{
	if (sym->none)
		copy_domains(sym, domain, placed);
	else
		describe_classes(sym, domain, placed);
}

static uint32_t hash_key(const struct symmetry *sym)
{
	uint64_t hash = 0x9e3779b97f4a7c15ULL;

	for (size_t i = 0; i < sym->key_words; i++) {
		hash = (hash ^ sym->key[i]) * 0xff51afd7ed558ccdULL;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

/* The key's slot, or the free one where it belongs. */
static struct slot *find_slot(struct symmetry *sym, uint32_t hash)
{
	unsigned int at = hash & (sym->n_slots - 1);

	while (sym->slots[at].at) {
		struct slot *slot = &sym->slots[at];

		if (slot->hash == hash &&
		    !memcmp(sym->arena + slot->at - 1, sym->key, sym->key_words * sizeof(*sym->key)))
			return slot;
		at = (at + 1) & (sym->n_slots - 1);
	}
	return &sym->slots[at];
}

bool symmetry_failed_before(struct symmetry *sym, const uint64_t *domain, const int32_t *placed, int64_t need)
{
	struct slot *slot;

	if (!sym->n_keys)
		return false;
	build_key(sym, domain, placed);
	slot = find_slot(sym, hash_key(sym));
	return slot->at && need >= slot->need;
}

static bool grow_slots(struct symmetry *sym)
{
	unsigned int n_slots = sym->n_slots ? 2 * sym->n_slots : SLOTS_MIN;
	struct slot *slots;

	if (2 * (sym->n_keys + 1) <= sym->n_slots)
		return true;
	if (n_slots > SLOTS_MAX)
		return false;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return false;
	for (unsigned int i = 0; i < sym->n_slots; i++) {
		unsigned int at = sym->slots[i].hash & (n_slots - 1);

		if (!sym->slots[i].at)
			continue;
		while (slots[at].at)
			at = (at + 1) & (n_slots - 1);
		slots[at] = sym->slots[i];
	}
	free(sym->slots);
	sym->slots = slots;
	sym->n_slots = n_slots;
	return true;
}

static bool grow_arena(struct symmetry *sym)
{
	size_t words = sym->arena_words ? sym->arena_words : ARENA_WORDS_MIN;
	uint64_t *arena;

	while (words < sym->arena_used + sym->key_words)
		words *= 2;
	if (words == sym->arena_words)
		return true;
	if (words > ARENA_WORDS_MAX)
		return false;
	arena = realloc(sym->arena, words * sizeof(*arena));
	if (!arena)
		return false;
	sym->arena = arena;
	sym->arena_words = words;
	return true;
}

void symmetry_note_failure(struct symmetry *sym, const uint64_t *domain, const int32_t *placed, int64_t need)
{
	struct slot *slot;
	uint32_t hash;

	if (!grow_slots(sym) || !grow_arena(sym))
		return;
	build_key(sym, domain, placed);
	hash = hash_key(sym);
	slot = find_slot(sym, hash);
	if (slot->at) {
		if (need < slot->need)
			slot->need = need;
		return;
	}
	slot->hash = hash;
	slot->at = (uint32_t)sym->arena_used + 1;
	slot->need = need;
	memcpy(sym->arena + sym->arena_used, sym->key, sym->key_words * sizeof(*sym->key));
	sym->arena_used += sym->key_words;
	sym->n_keys++;
}
