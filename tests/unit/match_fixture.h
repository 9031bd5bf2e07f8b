/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the matcher share: two machines, options and a map, and
 * what is asserted of them and of a refusal. Node ids: CPUs 0 and 1; GPUs from 2 on.
 */
#ifndef UNIT_MATCH_FIXTURE_H
#define UNIT_MATCH_FIXTURE_H

#include "unit.h"
#include "match/match.h"
#include "log_stub.h"
#include "match_machine.h"

#define GPU 2 /* node id of the first GPU */

static struct topology *saved, *local;
static struct match_options options;
static struct match_map *map;

static inline int setup(void **state)
{
	(void)state;
	log_clear();
	options = (struct match_options){ .nr_pairs = 0 };
	saved = machine_new(2);
	local = machine_new(2);
	map = NULL;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	match_map_free(map);
	topology_free(saved);
	topology_free(local);
	return 0;
}

/* ---- helpers ---- */

static inline int match(void)
{
	match_map_free(map);
	map = NULL;
	fail_clear();
	must(topology_finish(saved));
	must(topology_finish(local));
	return match_devices(saved, local, &options, &map);
}

static inline void assert_report(const char *part)
{
	if (!strstr(fail_text(), part))
		fail_msg("'%s' is not in the refusal: %s", part, fail_text());
}

static inline void assert_refused(const char *a, const char *b)
{
	assert_int_equal(match(), -ENODEV);
	assert_null(map);
	assert_report(a);
	assert_report(b);
}

/* The n-th pair is (user gpu id, actual gpu id). */
static inline void assert_pair(unsigned int n, uint32_t user, uint32_t actual)
{
	assert_non_null(map);
	assert_true(n < map->nr_pairs);
	if (map->pairs[n].user_gpu_id != user || map->pairs[n].actual_gpu_id != actual)
		fail_msg("pair %u is %#x -> %#x, expected %#x -> %#x", n, map->pairs[n].user_gpu_id,
			 map->pairs[n].actual_gpu_id, user, actual);
}

static inline uint32_t actual_of(uint32_t user)
{
	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		if (map->pairs[i].user_gpu_id == user)
			return map->pairs[i].actual_gpu_id;
	}
	fail_msg("%#x is not in the map", user);
	return 0;
}

/*
 * n GPUs without links between them, all on CPU node 0: saved 0xa0, 0xa1, ..., local 0xb0, 0xb1, ...
 * (0xb000 ... when these would be names of saved ones).
 */
static inline void plain_machines(unsigned int n_saved, unsigned int n_local)
{
	uint32_t first_local = n_saved > 16 ? 0xb000 : 0xb0;

	for (uint32_t i = 0; i < n_saved; i++)
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
	for (uint32_t i = 0; i < n_local; i++)
		add_gpu(local, GPU + i, first_local + i, 0);
}

static inline void set_all(struct topology *t, enum topology_prop prop, const uint64_t *values, unsigned int n)
{
	for (uint32_t i = 0; i < n; i++)
		set_prop(node_of(t, GPU + i), prop, values[i]);
}

/* One digit per GPU: its NUMA node. */
static inline void numa_machines(const char *src, const char *dst)
{
	for (uint32_t i = 0; src[i]; i++)
		add_gpu(saved, GPU + i, 0xa0 + i, (uint32_t)(src[i] - '0'));
	for (uint32_t i = 0; dst[i]; i++)
		add_gpu(local, GPU + i, 0xb0 + i, (uint32_t)(dst[i] - '0'));
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

#endif
