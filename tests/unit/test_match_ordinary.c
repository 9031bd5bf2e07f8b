// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher on ordinary machines: those of data/machines, and others that
 * people build, as they are and changed. Each is decided within a tenth of the
 * steps that there may be.
 */
#define _GNU_SOURCE
#define LIMIT 6000000

#include <ctype.h>
#include <glob.h>

#include "match/match.c"
#include "unit.h"
#include "machine_text.h"
#include "log_stub.h"

/* ---- descriptions, like those in data/machines ---- */

#define DESCRIBED_MAX 64

struct described_gpu {
	unsigned int package; /* number of the card; its partitions share it */
	unsigned int nr_partitions;
	int cpu; /* -1: not told */
	uint64_t hive;
	uint64_t present;
	uint64_t value[TOPOLOGY_NR_PROPS];
};

struct description {
	unsigned int nr_cpus;
	unsigned int nr_packages;
	unsigned int nr;
	struct described_gpu gpu[DESCRIBED_MAX];
};

/* Numbers as descriptions have them; of a list the first. */
static uint64_t described_number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	return value << (*end == 'T' ? 40 : *end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0);
}

/* Ends a section: its last entry stands for "count" cards. */
static void described_repeat(struct description *d, unsigned int count, const struct described_gpu *gpu)
{
	for (unsigned int c = 0; c < count; c++, d->nr_packages++) {
		for (unsigned int i = 0; i < gpu->nr_partitions; i++) {
			must(d->nr < DESCRIBED_MAX ? 0 : -E2BIG);
			d->gpu[d->nr] = *gpu;
			d->gpu[d->nr++].package = d->nr_packages;
		}
	}
}

static void described_set(struct described_gpu *gpu, unsigned int *count, const char *key, const char *value)
{
	uint64_t number = described_number(value);

	if (!strcmp(key, "count"))
		*count = (unsigned int)number;
	else if (!strcmp(key, "partitions"))
		gpu->nr_partitions = (unsigned int)number;
	else if (!strcmp(key, "cpu"))
		gpu->cpu = (int)number;
	else if (!strcmp(key, "hive_id"))
		gpu->hive = number;
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		if (i == TOPOLOGY_GPU_ID || i == TOPOLOGY_DRM_RENDER_MINOR || strcmp(topology_prop_info(i)->name, key))
			continue;
		gpu->value[i] = number;
		gpu->present |= 1ULL << i;
	}
}

static void described_end(struct description *d, char section, unsigned int count,
				 const struct described_gpu *gpu)
{
	if (section == 'c')
		d->nr_cpus += count;
	else if (section == 'g')
		described_repeat(d, count, gpu);
}

/* What the matcher looks at of a description; the file is closed. */
static struct description describe(FILE *f)
{
	struct description d = { 0 };
	struct described_gpu gpu;
	char line[256], key[64], value[160], section = 0;
	unsigned int count = 1;

	must(f ? 0 : -ENOENT);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		if (line[0] == '[') {
			described_end(&d, section, count, &gpu);
			section = line[1];
			count = 1;
			gpu = (struct described_gpu){ .nr_partitions = 1, .cpu = -1 };
		} else if (sscanf(line, " %63[a-z_0-9] = %159[^\n]", key, value) == 2) {
			described_set(&gpu, &count, key, value);
		}
	}
	described_end(&d, section, count, &gpu);
	fclose(f);
	return d;
}

static unsigned int described_cpu(const struct description *d, unsigned int k)
{
	return d->gpu[k].cpu >= 0 ? (unsigned int)d->gpu[k].cpu : k * d->nr_cpus / d->nr;
}

/* GPU k is in slot[k], which gives node, gpu id and PCI address. */
static void described_links(struct topology *t, const struct description *d, const uint32_t *slot)
{
	for (unsigned int a = 0; a < d->nr; a++) {
		for (unsigned int b = 0; b < d->nr; b++) {
			const struct described_gpu *x = &d->gpu[a], *y = &d->gpu[b];
			bool xgmi = x->hive && x->hive == y->hive;
			uint32_t mbps = x->package == y->package ? 819200 : x->nr_partitions > 1 ? 0 : 50000;

			if (a != b)
				link_one_way(t, d->nr_cpus + slot[a], d->nr_cpus + slot[b],
					     xgmi ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE, xgmi ? mbps : 32000);
		}
	}
}

static struct topology *machine_described(const struct description *d, uint32_t first_gpu_id,
						 const uint32_t *slot)
{
	struct topology *t = machine_new(d->nr_cpus);

	for (unsigned int k = 0; k < d->nr; k++) {
		struct topology_node *node =
			add_gpu(t, d->nr_cpus + slot[k], first_gpu_id + slot[k], described_cpu(d, k));

		for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
			if (d->gpu[k].present >> i & 1)
				set_prop(node, i, d->gpu[k].value[i]);
		}
		set_prop(node, TOPOLOGY_LOCATION_ID, (0x41 + slot[k]) << 8);
	}
	described_links(t, d, slot);
	return t;
}

/* ---- machines ---- */

#define MODEL(device_, vram_) "device_id = " #device_ "\nvram_size = " #vram_ "\n"

static const struct {
	const char *name;
	const char *text;
} ordinary_machines[] = {
	{ "2 hives of 4", "[cpu]\ncount = 2\n[gpu]\ncount = 4\nhive_id = 1\n[gpu]\ncount = 4\nhive_id = 2\n" },
	{ "8 cards of 2 GPUs in a hive", "[cpu]\ncount = 4\n[gpu]\ncount = 8\npartitions = 2\nhive_id = 1\n" },
	{ "4 hives of 4, 4 NUMA nodes",
	  "[cpu]\ncount = 4\n[gpu]\ncount = 4\nhive_id = 1\n[gpu]\ncount = 4\nhive_id = 2\n[gpu]\ncount = 4\n"
	  "hive_id = 3\n[gpu]\ncount = 4\nhive_id = 4\n" },
	{ "8 in DPX", "[cpu]\ncount = 2\n[gpu]\ncount = 8\npartitions = 2\nhive_id = 1\n" },
	{ "8 in QPX, 8 NUMA nodes", "[cpu]\ncount = 8\n[gpu]\ncount = 8\npartitions = 4\nhive_id = 1\n" },
	{ "8 in CPX, 8 NUMA nodes", "[cpu]\ncount = 8\n[gpu]\ncount = 8\npartitions = 8\nhive_id = 1\n" },
	{ "4 in CPX, 4 in SPX", "[cpu]\ncount = 2\n[gpu]\ncount = 4\npartitions = 8\nhive_id = 1\n" MODEL(
					0x74a1, 24G) "[gpu]\ncount = 4\nhive_id = 1\n" MODEL(0x74a1, 192G) },
	{ "20 of 4 models on PCIe",
	  "[cpu]\ncount = 2\n[gpu]\ncount = 5\n" MODEL(1, 16G) "[gpu]\ncount = 5\n" MODEL(
		  1, 32G) "[gpu]\ncount = 5\n" MODEL(2, 24G) "[gpu]\ncount = 5\n" MODEL(3, 8G) },
	{ "hive of 4, pair, 6 loose",
	  "[cpu]\ncount = 2\n[gpu]\ncount = 4\nhive_id = 1\n[gpu]\ncount = 2\nhive_id = 2\n[gpu]\ncount = 6\n" },
	{ "64 on PCIe, 8 NUMA nodes", "[cpu]\ncount = 8\n[gpu]\ncount = 64\n" },
	{ "8 hives of 8, 8 NUMA nodes",
	  "[cpu]\ncount = 8\n[gpu]\ncount = 8\nhive_id = 1\n[gpu]\ncount = 8\nhive_id = 2\n[gpu]\ncount = 8\n"
	  "hive_id = 3\n[gpu]\ncount = 8\nhive_id = 4\n[gpu]\ncount = 8\nhive_id = 5\n[gpu]\ncount = 8\nhive_id = 6\n"
	  "[gpu]\ncount = 8\nhive_id = 7\n[gpu]\ncount = 8\nhive_id = 8\n" },
};

/* ---- what becomes of them ---- */

struct change {
	const char *name;
	bool other_ids; /* on another machine */
	enum { SLOTS_SAME, SLOTS_REVERSED, SLOTS_SHUFFLED, SLOTS_TWO_SWAPPED } slots;
	unsigned int leaves_out; /* every n-th saved GPU is not of the process; 0: all are */
	bool second_half;	 /* only the second half of the saved GPUs is of the process */
	unsigned int busy;	 /* of 8 local cards are busy, at random */
	bool scattered;		 /* of 8 local GPUs instead: partitions of a card for different users */
	enum { WHOLE, ONE_WEAKER, ONE_UNLINKED, ONE_FEWER, ONE_ON_OTHER_CPU } damage;
};

static const struct change changes[] = {
	{ .name = "same" },
	{ .name = "other ids", .other_ids = true },
	{ .name = "reversed", .other_ids = true, .slots = SLOTS_REVERSED },
	{ .name = "shuffled", .other_ids = true, .slots = SLOTS_SHUFFLED },
	{ .name = "two cards swapped", .slots = SLOTS_TWO_SWAPPED },
	{ .name = "3 of 4", .leaves_out = 4 },
	{ .name = "3 of 4, other ids", .other_ids = true, .leaves_out = 4 },
	{ .name = "3 of 4, shuffled", .other_ids = true, .slots = SLOTS_SHUFFLED, .leaves_out = 4 },
	{ .name = "4 of 5, shuffled", .other_ids = true, .slots = SLOTS_SHUFFLED, .leaves_out = 5 },
	{ .name = "half", .second_half = true },
	{ .name = "half, other ids", .other_ids = true, .second_half = true },
	{ .name = "half, 3 of 8 busy", .second_half = true, .busy = 3 },
	{ .name = "half, 3 of 8 busy, other ids", .other_ids = true, .second_half = true, .busy = 3 },
	{ .name = "half, 5 of 8 busy", .second_half = true, .busy = 5 },
	{ .name = "half, 5 of 8 busy, shuffled",
	  .other_ids = true,
	  .slots = SLOTS_SHUFFLED,
	  .second_half = true,
	  .busy = 5 },
	{ .name = "quarter, 4 of 8 busy", .leaves_out = 2, .second_half = true, .busy = 4 },
	{ .name = "half of each card, 4 of 8 busy", .leaves_out = 2, .busy = 4 },
	{ .name = "half of each card, 4 of 8 busy, other ids",
	  .other_ids = true,
	  .leaves_out = 2,
	  .busy = 4 },
	{ .name = "quarter, scattered busy",
	  .leaves_out = 2,
	  .second_half = true,
	  .busy = 4,
	  .scattered = true },
	{ .name = "half, scattered busy", .second_half = true, .busy = 3, .scattered = true },
	{ .name = "half of each card, scattered busy", .leaves_out = 2, .busy = 4, .scattered = true },
	{ .name = "one weaker", .damage = ONE_WEAKER },
	{ .name = "one weaker, shuffled", .other_ids = true, .slots = SLOTS_SHUFFLED, .damage = ONE_WEAKER },
	{ .name = "one unlinked", .damage = ONE_UNLINKED },
	{ .name = "one unlinked, shuffled", .other_ids = true, .slots = SLOTS_SHUFFLED, .damage = ONE_UNLINKED },
	{ .name = "3 of 4, one unlinked", .leaves_out = 4, .damage = ONE_UNLINKED },
	{ .name = "one fewer", .damage = ONE_FEWER },
	{ .name = "one on another CPU", .damage = ONE_ON_OTHER_CPU },
	{ .name = "one on another CPU, shuffled",
	  .other_ids = true,
	  .slots = SLOTS_SHUFFLED,
	  .damage = ONE_ON_OTHER_CPU },
};

struct ordinary_case {
	struct topology *saved;
	struct topology *local;
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	struct match_options options; /* points into this struct */
};

static uint32_t ordinary_below(uint64_t *random, uint32_t n)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((*random >> 33) % n);
}

/* Which card is in which slot; the partitions of a card stay in their order. */
static void ordinary_slots(const struct change *c, const struct description *d, uint64_t *random, uint32_t *slot)
{
	unsigned int nr = d->nr, card[DESCRIBED_MAX], next = 0;

	for (unsigned int i = 0; i < d->nr_packages; i++) {
		unsigned int j = c->slots == SLOTS_SHUFFLED ? ordinary_below(random, i + 1) : i;

		card[i] = card[j];
		card[j] = c->slots == SLOTS_REVERSED ? d->nr_packages - 1 - i : i;
	}
	for (unsigned int i = 0; i < d->nr_packages; i++) {
		for (unsigned int k = 0; k < nr; k++) {
			if (d->gpu[k].package == card[i])
				slot[k] = next++;
		}
	}
	/* The first card and the last, partition by partition. */
	for (unsigned int k = 0; c->slots == SLOTS_TWO_SWAPPED && d->nr_packages > 1 && k < d->gpu[0].nr_partitions &&
				 d->gpu[nr - 1].nr_partitions == d->gpu[0].nr_partitions;
	     k++) {
		slot[k] = nr - d->gpu[0].nr_partitions + k;
		slot[slot[k]] = k;
	}
}

/* Takes away every link between GPUs at this node. */
static void ordinary_unlink(struct topology *t, uint32_t id, unsigned int nr_cpus)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		struct topology_node *node = t->nodes[i];
		unsigned int kept = 0;

		for (unsigned int l = 0; l < node->nr_links; l++) {
			if (node->id < nr_cpus || node->links[l].node_to_id < nr_cpus ||
			    (node->id != id && node->links[l].node_to_id != id))
				node->links[kept++] = node->links[l];
		}
		node->nr_links = kept;
	}
}

static void ordinary_damage(const struct change *c, const struct description *d, struct topology *t)
{
	uint32_t id = d->nr_cpus + d->nr / 2;
	struct topology_node *node = node_of(t, id);

	if (c->damage == ONE_WEAKER)
		set_prop(node, TOPOLOGY_VRAM_SIZE, 1);
	else if (c->damage == ONE_UNLINKED)
		ordinary_unlink(t, id, d->nr_cpus);
	else if (c->damage == ONE_FEWER)
		set_prop(node, TOPOLOGY_GPU_ID, 0);
	else if (c->damage == ONE_ON_OTHER_CPU)
		set_prop(node, TOPOLOGY_NUMA_NODE, 0);
}

static void ordinary_make(struct ordinary_case *ret, const struct description *d, const struct change *c)
{
	uint64_t random = 12345;
	uint32_t slot[DESCRIBED_MAX], as_they_are[DESCRIBED_MAX];
	bool busy = false;

	memset(ret, 0, sizeof(*ret));
	for (unsigned int k = 0; k < d->nr; k++)
		as_they_are[k] = k;
	ordinary_slots(c, d, &random, slot);
	ret->saved = machine_described(d, 0x1000, as_they_are);
	ret->local = machine_described(d, c->other_ids ? 0x2000 : 0x1000, slot);
	for (unsigned int k = 0; k < d->nr; k++) {
		if ((c->leaves_out && k % c->leaves_out == 0 && d->nr > 1) || (c->second_half && k < d->nr / 2))
			set_prop(node_of(ret->saved, d->nr_cpus + k), TOPOLOGY_GPU_ID, 0);
		if (c->scattered || !k || d->gpu[k].package != d->gpu[k - 1].package)
			busy = ordinary_below(&random, 8) < c->busy;
		ret->usage[d->nr_cpus + slot[k]].has_queues = busy;
	}
	ordinary_damage(c, d, ret->local);
	must(topology_finish(ret->saved));
	must(topology_finish(ret->local));
	ret->options.usage = c->busy ? ret->usage : NULL;
}

static void ordinary_done(struct ordinary_case *c)
{
	topology_free(c->saved);
	topology_free(c->local);
}

/* Calls fn with the name and description of every machine: the files of "dir", then those above. */
static void for_each_ordinary(const char *dir, void (*fn)(const char *name, const struct description *d))
{
	char pattern[256];
	struct description d;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.txt", dir);
	must(glob(pattern, 0, NULL, &found) ? -ENOENT : 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		d = describe(fopen(found.gl_pathv[i], "r"));
		fn(strrchr(found.gl_pathv[i], '/') + 1, &d);
	}
	globfree(&found);
	for (size_t i = 0; i < ARRAY_SIZE(ordinary_machines); i++) {
		const char *text = ordinary_machines[i].text;

		d = describe(fmemopen((void *)text, strlen(text), "r"));
		fn(ordinary_machines[i].name, &d);
	}
}

/* ---- what the matcher makes of them ---- */

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
	free(other);
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
	/* What has no map may stay undecided. */
	if (err != 0 && ((err != -ENODEV && err != -E2BIG) || is_complete(change)))
		fail_msg("%s: %s", name, fail_text());
	fail_clear();
	if (!err && is_complete(change) && !change->other_ids && change->slots == SLOTS_SAME && !change->busy)
		assert_same_ids(map, name);
	if (!err && change->busy)
		check_busy(&c, map, name);
	if ((change->damage == ONE_WEAKER || change->damage == ONE_FEWER) && !err)
		fail_msg("%s: has a map", name);
	free(map);
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
