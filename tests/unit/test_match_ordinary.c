// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher on ordinary machines: those of data/machines, and others that
 * people build, as they are and changed. Each is decided within a tenth of the
 * steps that there may be.
 */
#define _GNU_SOURCE
#define LIMIT 6000000

#include "match/match.c"
#include "unit.h"
#include "match_ordinary.h"
#include "log_stub.h"

static unsigned int nr_machines;

static bool is_complete(const struct change *c)
{
	return c->damage == WHOLE;
}

/* Is the map between GPUs that keep their ids? */
static void assert_same_ids(const struct match_map *map, const char *name)
{
	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		if (map->pairs[i].user_gpu_id != map->pairs[i].actual_gpu_id)
			fail_msg("%s: %#x becomes %#x", name, map->pairs[i].user_gpu_id, map->pairs[i].actual_gpu_id);
	}
}

/* Where idle GPUs alone would do, no busy one is taken. */
static void check_busy(const struct ordinary_case *c, const struct match_map *map, const char *name)
{
	const char *unusable[TOPOLOGY_MAX_NODES] = { NULL };
	struct match_options idle = c->options;
	struct match_map *other = NULL;

	for (unsigned int i = 0; i < c->local->nr_nodes; i++)
		unusable[i] = c->usage[i].has_queues ? "busy" : NULL;
	idle.unusable = unusable;
	if (match_devices(c->saved, c->local, &idle, &other)) {
		fail_clear();
		return;
	}
	match_map_free(other);
	for (unsigned int i = 0; i < map->nr_pairs; i++)
		if (c->usage[map->pairs[i].local].has_queues)
			fail_msg("%s: a busy GPU is taken, and idle ones would do", name);
}

static void check_change(const char *machine, const struct description *d, const struct change *change)
{
	struct match_map *map = NULL;
	struct ordinary_case c;
	char name[128];
	int err;

	snprintf(name, sizeof(name), "%s, %s", machine, change->name);
	ordinary_make(&c, d, change);
	err = match_devices(c.saved, c.local, &c.options, &map);
	if (err != 0 && (err != -ENODEV || is_complete(change)))
		fail_msg("%s: %s", name, fail_text());
	fail_clear();
	if (!err && is_complete(change) && !change->other_ids && change->slots == SLOTS_SAME && !change->busy)
		assert_same_ids(map, name);
	if (!err && change->busy)
		check_busy(&c, map, name);
	if ((change->damage == ONE_WEAKER || change->damage == ONE_FEWER) && !err)
		fail_msg("%s: has a map", name);
	match_map_free(map);
	ordinary_done(&c);
}

static void check_machine(const char *name, const struct description *d)
{
	nr_machines++;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		check_change(name, d, &changes[i]);
}

TEST(match_decides_every_ordinary_machine)
{
	for_each_ordinary(TEST_DATA "/machines", check_machine);
	assert_in_range(nr_machines, 20, 100);
}

UNIT_MAIN(NULL, NULL)
