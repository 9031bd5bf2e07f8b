// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher: which of several maps it takes, KFD_DEVICE_MAP, and what a
 * refusal says.
 */
#define _GNU_SOURCE
#include "unit.h"
#include "match_fixture.h"

static struct device_map_entry pairs[TOPOLOGY_MAX_NODES];

static void set_map(const char *text)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", text);
	options.pairs = pairs;
	options.nr_pairs = 0;
	for (char *rest = copy, *pair; (pair = strsep(&rest, ","));) {
		struct device_map_entry *e = &pairs[options.nr_pairs++];
		unsigned int a, b;

		assert_int_equal(sscanf(pair, "%x=%x", &a, &b), 2);
		e->saved = (struct device_ref){ DEVICE_REF_GPU_ID, a };
		e->local = (struct device_ref){ DEVICE_REF_GPU_ID, b };
	}
}

/* ---- nearness ---- */

FIXTURE_TEST(match_prefers_the_same_gpu_ids)
{
	for (uint32_t i = 0; i < 4; i++) {
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
		add_gpu(local, GPU + i, 0xa0 + (i + 1) % 4, 0);
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, (0xa0 + i) << 8);
	}
	assert_int_equal(match(), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_pair(i, 0xa0 + i, 0xa0 + i);
}

FIXTURE_TEST(match_prefers_pci_addresses_to_numa_nodes)
{
	add_gpu(saved, GPU, 0xa0, 1);
	add_gpu(local, GPU, 0xb0, 1);
	add_gpu(local, GPU + 1, 0xb1, 0);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb0);
	set_prop(node_of(local, GPU + 1), TOPOLOGY_LOCATION_ID, 0xa000);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
	/* The same address in another domain is another address. */
	set_prop(node_of(local, GPU + 1), TOPOLOGY_DOMAIN, 1);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb0);
}

FIXTURE_TEST(match_prefers_numa_nodes_to_low_numbers)
{
	numa_machines("1", "00101");
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
}

FIXTURE_TEST(match_prefers_idle_gpus_to_all_names)
{
	struct gpu_usage usage[TOPOLOGY_MAX_NODES] = { [GPU].has_queues = true, [GPU + 1].has_queues = true };

	for (uint32_t i = 0; i < 2; i++)
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(local, GPU + i, 0xa0 + i, 0);
	options.usage = usage;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xa2);
	assert_pair(1, 0xa1, 0xa3);
	/* Where one has to be busy, the name decides which. */
	usage[GPU + 2].has_queues = true;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xa3);
	assert_pair(1, 0xa1, 0xa1);
}

/* Two idle GPUs in a hive do not help three linked ones: links come first. */
FIXTURE_TEST(match_prefers_links_to_idle_gpus)
{
	struct gpu_usage usage[TOPOLOGY_MAX_NODES] = { [GPU].has_queues = true, [GPU + 1].has_queues = true };

	plain_machines(3, 5);
	link_hive(saved, GPU, 3);
	link_hive(local, GPU, 3);
	link_hive(local, GPU + 3, 2);
	options.usage = usage;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(1, 0xa1, 0xb0);
	assert_pair(2, 0xa2, 0xb1);
}

/* ---- KFD_DEVICE_MAP ---- */

FIXTURE_TEST(match_obeys_a_partial_device_map)
{
	plain_machines(3, 4);
	set_map("a2=b0");
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb2);
	assert_pair(2, 0xa2, 0xb0);
}

FIXTURE_TEST(match_checks_the_device_map)
{
	plain_machines(1, 2);
	set_prop(node_of(local, GPU + 1), TOPOLOGY_VRAM_SIZE, 32 * GIB);
	set_map("a0=b1");
	assert_refused("vram_size, wanted at least 64 GiB", "0xb1 (32 GiB)");
	assert_report("KFD_DEVICE_MAP chooses 0xb1, not: local 0xb0");
	options.relaxed[MATCH_CHECK_VRAM_SIZE] = true;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
}

FIXTURE_TEST(match_checks_links_of_the_device_map)
{
	plain_machines(2, 3);
	link_hive(saved, GPU, 2);
	link_hive(local, GPU, 2);
	set_map("a0=b2");
	assert_refused("as saved 0xa0 and 0xa1 were: linked by XGMI", "KFD_TOPOLOGY_CHECK=0");
	set_map("a0=b1");
	assert_int_equal(match(), 0);
	assert_pair(1, 0xa1, 0xb0);
}

FIXTURE_TEST(match_takes_minors_and_pci_addresses_in_the_device_map)
{
	plain_machines(2, 3);
	options.pairs = pairs;
	options.nr_pairs = 2;
	pairs[0] = (struct device_map_entry){ { DEVICE_REF_RENDER_MINOR, 128 + GPU }, { DEVICE_REF_PCI, 0xb200 } };
	pairs[1] = (struct device_map_entry){ { DEVICE_REF_PCI, 0xa100 }, { DEVICE_REF_RENDER_MINOR, 128 + GPU } };
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(1, 0xa1, 0xb0);
}

static void assert_bad_map(const char *part)
{
	assert_int_equal(match(), -EINVAL);
	assert_report(part);
}

/* Kernels put the number of a partition into the function, or into the upper bits. */
FIXTURE_TEST(match_takes_no_pci_address_for_one_of_several_partitions)
{
	plain_machines(2, 2);
	set_map("a0=b1");
	for (uint32_t i = 0; i < 2; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, 0xc100 | i << 28);
	pairs[0].local = (struct device_ref){ DEVICE_REF_PCI, 0xc100 };
	assert_bad_map("0000:c1:00.0 names several GPUs of the machine; use gpu ids");
	set_prop(node_of(local, GPU + 1), TOPOLOGY_LOCATION_ID, 0xc101);
	pairs[0].local = (struct device_ref){ DEVICE_REF_PCI, 0xc101 };
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
}

FIXTURE_TEST(match_refuses_device_maps_of_gpus_that_are_not_there)
{
	const char *unusable[TOPOLOGY_MAX_NODES] = { [GPU + 1] = "it is full" };

	plain_machines(2, 2);
	set_map("b0=b0");
	assert_bad_map("0xb0 is no GPU of the image");
	set_map("a0=a0");
	assert_bad_map("0xa0 is no GPU of the machine");
	set_map("a0=b0");
	pairs[0].saved = (struct device_ref){ DEVICE_REF_PCI, 0x100 };
	assert_bad_map("0000:01:00.0 is no GPU of the image");
	for (unsigned int i = 0; i < 2; i++)
		clear_prop(node_of(saved, GPU + i), TOPOLOGY_LOCATION_ID);
	assert_bad_map("the image has no PCI addresses");
	set_map("a0=b1");
	options.unusable = unusable;
	assert_bad_map("may not use 0xb1 of this machine: it is full");
	options.unusable = NULL;
	set_prop(node_of(local, GPU + 1), TOPOLOGY_DRM_RENDER_MINOR, 128 + GPU);
	pairs[0].local = (struct device_ref){ DEVICE_REF_RENDER_MINOR, 128 + GPU };
	assert_bad_map("renderD130 names several GPUs of the machine");
}

FIXTURE_TEST(match_refuses_device_maps_that_name_a_gpu_twice)
{
	plain_machines(2, 2);
	set_map("a0=b0,a1=b1");
	pairs[1].saved = (struct device_ref){ DEVICE_REF_RENDER_MINOR, 128 + GPU };
	assert_bad_map("second time");
	set_map("a0=b0,a1=b1");
	pairs[1].local = (struct device_ref){ DEVICE_REF_PCI, 0xb000 };
	assert_bad_map("second time");
}

/* ---- refusals ---- */

FIXTURE_TEST(match_says_what_the_first_of_eight_gpus_meets)
{
	plain_machines(8, 8);
	for (uint32_t i = 0; i < 8; i++) {
		set_prop(node_of(saved, GPU + i), TOPOLOGY_VRAM_SIZE, (64 + i) * GIB);
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, (32 + i) * GIB);
	}
	assert_refused("8 of 8 saved GPUs fit no local GPU; saved 0xa0: vram_size, wanted at least 64 GiB", "0xb7 (39 GiB)");
	assert_null(strstr(fail_text(), "saved 0xa1"));
}

FIXTURE_TEST(match_tells_the_same_of_equal_gpus_once)
{
	plain_machines(8, 8);
	for (uint32_t i = 0; i < 8; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_FW_VERSION, 15);
	assert_refused("saved 0xa0: fw_version, wanted at least 16 (KFD_FW_VER_CHECK=0 accepts it): local",
		       ": local 0xb0 0xb1 0xb2 0xb3 0xb4 0xb5 0xb6 0xb7 (15)");
}

FIXTURE_TEST(match_says_which_gpus_fit_too_few)
{
	plain_machines(3, 4);
	for (uint32_t i = 0; i < 3; i++)
		set_prop(node_of(saved, GPU + i), TOPOLOGY_VRAM_SIZE, 128 * GIB);
	for (uint32_t i = 0; i < 2; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, 192 * GIB);
	assert_refused("3 saved GPUs fit only 2 local GPUs", "0xb2 0xb3 (64 GiB)");
	assert_report("saved 0xa0 0xa1 0xa2; local 0xb0 0xb1");
}

FIXTURE_TEST(match_refuses_groups_that_do_not_fit_together)
{
	/* Three hives of three do not fit into two of five, though each GPU and each hive would. */
	plain_machines(9, 10);
	for (uint32_t i = 0; i < 3; i++)
		link_hive(saved, GPU + 3 * i, 3);
	for (uint32_t i = 0; i < 2; i++)
		link_hive(local, GPU + 5 * i, 5);
	assert_refused("no choice of local GPUs keeps all links", "KFD_TOPOLOGY_CHECK=0 does not look at links");
}

/* ---- hives into hives ---- */

/* Hives of @size GPUs from the first one on, until @nr are in one; 0 ends the list. */
static void link_hives(struct topology *t, const unsigned int *sizes)
{
	for (uint32_t first = GPU; *sizes; first += *sizes++)
		link_hive(t, first, *sizes);
}

static void in_hives_of(struct topology *t, unsigned int nr, unsigned int size)
{
	for (uint32_t first = GPU; first + size <= GPU + nr; first += size)
		link_hive(t, first, size);
}

/* 16 of 3 into 8 of 8: two in each. */
FIXTURE_TEST(match_packs_hives_that_just_fit)
{
	plain_machines(48, 64);
	in_hives_of(saved, 48, 3);
	in_hives_of(local, 64, 8);
	assert_int_equal(match(), 0);
	for (unsigned int i = 0; i < 48; i++)
		assert_int_equal((map->pairs[i].local - GPU) / 8, (map->pairs[i / 3 * 3].local - GPU) / 8);
}

/* Into hives of 8, 8, 10: 3 + 5, 3 + 5, 2 + 3 + 4. What failed with the one of 8 must not count for that of 10. */
FIXTURE_TEST(match_tells_hives_of_different_size_apart)
{
	plain_machines(25, 26);
	link_hives(saved, (const unsigned int[]){ 3, 3, 5, 5, 2, 3, 4, 0 });
	link_hives(local, (const unsigned int[]){ 8, 8, 10, 0 });
	assert_int_equal(match(), 0);
}

/*
 * Two local GPUs that are linked to each other (X) and two that are not (Y) look the same from outside: all are linked to
 * the two of Z. Leaving two of X free is not leaving two of Y free. With "odd", a single one looks so, too.
 */
static void match_pairs_of_two_kinds(unsigned int odd)
{
	uint32_t x = GPU + odd, y = x + 2, z = y + 2, end = z + 2, nr_saved = odd ? 6 : 5;

	plain_machines(nr_saved, end - GPU);
	for (uint32_t a = GPU; a < end; a++)
		for (uint32_t b = a + 1; b < end; b++)
			if (b >= z || (a == x && b == x + 1))
				link_both(local, a, b, TOPOLOGY_LINK_XGMI, 50000);
	/* The first two are on Z; the third is linked to them; the last two are to each other. */
	for (uint32_t i = 0; i < 2; i++) {
		set_prop(node_of(local, z + i), TOPOLOGY_DEVICE_ID, 7 + i);
		set_prop(node_of(saved, GPU + i), TOPOLOGY_DEVICE_ID, 7 + i);
		link_both(saved, GPU + i, GPU + 2, TOPOLOGY_LINK_XGMI, 50000);
	}
	link_both(saved, GPU + nr_saved - 2, GPU + nr_saved - 1, TOPOLOGY_LINK_XGMI, 50000);
	assert_int_equal(match(), 0);
	assert_int_equal(map->pairs[nr_saved - 2].local, x);
	assert_int_equal(map->pairs[nr_saved - 1].local, x + 1);
}

FIXTURE_TEST(match_tells_linked_gpus_from_others)
{
	match_pairs_of_two_kinds(0);
	teardown(NULL);
	setup(NULL);
	match_pairs_of_two_kinds(1);
}

/* 17 of 3 into 8 of 8: GPUs enough, and a proof that takes too long. */
FIXTURE_TEST(match_says_when_it_is_undecided)
{
	plain_machines(51, 64);
	in_hives_of(saved, 51, 3);
	in_hives_of(local, 64, 8);
	for (uint32_t i = 0; i < 64; i++)
		link_both(local, GPU + i, GPU + (i * 7 + 5) % 64, TOPOLOGY_LINK_PCIE, 0);
	assert_int_equal(match(), -E2BIG);
	assert_report("undecided whether there is a map of 51 saved to 64 local GPUs; name pairs by KFD_DEVICE_MAP");
}

FIXTURE_TEST(match_gives_up_on_too_many_kinds_of_links)
{
	plain_machines(10, 10);
	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t j = 0; j < 10; j++)
			if (i != j)
				link_one_way(saved, GPU + i, GPU + j, TOPOLOGY_LINK_XGMI, 1 + 10 * i + j);
	assert_int_equal(match(), -E2BIG);
	assert_report("undecided: the image's GPUs are linked in more than 64 different ways");
}

/* ---- work: a process sees more GPUs than it works on ---- */

static struct match_candidates candidates;
static struct match_choices choices;

/* A machine of eight in a hive, with the same ids at dump and at restore. @done, @others: a digit for each GPU. */
static void eight_gpus(const char *done, const char *others, uint64_t others_free, struct match_process *process)
{
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	*process = (struct match_process){ .saved = saved, .machine = local, .options = &options, .choices = &choices };
	for (uint32_t i = 0; i < 8; i++) {
		struct gpu_usage *usage = &candidates.usage[GPU + i];

		process->work[GPU + i].has_queues = done[i] == 'q';
		process->work[GPU + i].vram_needed = done[i] == '.' ? 0 : done[i] == 'c' ? GIB : 50 * GIB;
		usage->knows_vram = true;
		usage->has_queues = others[i] == 'q';
		usage->vram_free = others[i] == 'q' ? others_free : 64 * GIB;
	}
}

static int choose(const struct match_process *process)
{
	match_map_free(steal_ptr(map));
	fail_clear();
	return match_choose(process, &candidates, &map);
}

/* q: queues and much VRAM, c: a little VRAM, .: nothing. What each of the eight becomes. */
static const struct {
	const char *done, *others;
	uint64_t others_free_gib;
	const char *becomes;
} eights[] = {
	{ ".......q", "........", 64, "01234567" },
	{ ".......q", "q.......", 40, "01234567" },
	{ ".......q", "q.......", 60, "01234567" },
	{ "....qqqq", "qqqq....", 40, "01234567" },
	{ "....qqqq", "qqqq....", 60, "01234567" },
	{ "q.......", ".......q", 40, "01234567" },
	{ "qqqq....", "....qqqq", 40, "01234567" },
	/* Its own is taken: an idle one. */
	{ "q.......", "q.......", 40, "10234567" },
	{ "q.......", "q.......", 60, "10234567" },
	/* Too few are idle for all: those whose own is keep it. */
	{ "qqqqqqqq", "q.......", 60, "01234567" },
	{ "........", "q.......", 40, "01234567" },
	/* A runtime keeps a little in each GPU that it sees: the queues decide. */
	{ "qccccccc", "q.......", 60, "10234567" },
	{ "cccccccq", "q.......", 60, "01234567" },
};

FIXTURE_TEST(match_keeps_gpus_that_the_job_works_on)
{
	struct match_process process;
	char becomes[9] = "";

	for (uint32_t i = 0; i < 8; i++) {
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
		add_gpu(local, GPU + i, 0xa0 + i, 0);
	}
	link_hive(saved, GPU, 8);
	link_hive(local, GPU, 8);
	must(topology_finish(saved));
	must(topology_finish(local));
	for (size_t n = 0; n < ARRAY_SIZE(eights); n++) {
		eight_gpus(eights[n].done, eights[n].others, eights[n].others_free_gib * GIB, &process);
		assert_int_equal(choose(&process), 0);
		for (unsigned int i = 0; i < 8; i++)
			becomes[i] = (char)('0' + map->pairs[i].local - GPU);
		if (strcmp(becomes, eights[n].becomes))
			fail_msg("work %s, others %s, %u GiB free there: %s, not %s", eights[n].done, eights[n].others,
				 (unsigned int)eights[n].others_free_gib, becomes, eights[n].becomes);
	}
}

/* It is a rule of one saved and one local GPU: where nothing is needed, a full one does. */
FIXTURE_TEST(match_takes_a_full_gpu_where_no_memory_is_needed)
{
	struct match_process process = { .saved = saved, .machine = local, .options = &options, .choices = &choices };

	plain_machines(2, 2);
	must(topology_finish(saved));
	must(topology_finish(local));
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	process.work[GPU].vram_needed = 10 * GIB;
	candidates.usage[GPU] = (struct gpu_usage){ .knows_vram = true, .vram_free = 9 * GIB + 1 };
	candidates.usage[GPU + 1] = (struct gpu_usage){ .knows_vram = true, .vram_free = 10 * GIB };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb0);
	candidates.usage[GPU + 1].vram_free--;
	assert_int_equal(choose(&process), -ENODEV);
	assert_report("1 of 2 saved GPUs fit no local GPU; saved 0xa0: free VRAM, wanted at least 10240 MiB "
		      "(KFD_VRAM_SIZE_CHECK=0 accepts it): local 0xb0 (9216 MiB) 0xb1 (10239 MiB)");
	options.relaxed[MATCH_CHECK_VRAM_SIZE] = true;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
}

/* Two partitions of 100 GiB each, and one device with 150 GiB: each would have room alone. */
FIXTURE_TEST(match_asks_for_the_room_of_partitions_together)
{
	struct match_process process = { .saved = saved, .machine = local, .options = &options, .choices = &choices };

	plain_machines(2, 4);
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	for (uint32_t i = 0; i < 4; i++) {
		if (i < 2)
			process.work[GPU + i].vram_needed = 100 * GIB;
		set_prop(node_of(local, GPU + i), TOPOLOGY_GFX_TARGET_VERSION, 90402);
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, (1 + i / 2) << 8 | i % 2);
		candidates.usage[GPU + i] = (struct gpu_usage){ .knows_vram = true, .vram_free = 150 * GIB };
	}
	set_prop(node_of(saved, GPU), TOPOLOGY_GFX_TARGET_VERSION, 90402);
	set_prop(node_of(saved, GPU + 1), TOPOLOGY_GFX_TARGET_VERSION, 90402);
	must(topology_finish(saved));
	must(topology_finish(local));
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa1, 0xb2);
	strcpy(candidates.reason[GPU + 2], "it is somebody's");
	strcpy(candidates.reason[GPU + 3], "it is somebody's");
	assert_int_equal(choose(&process), -ENODEV);
	assert_report("and has room for those that become partitions of one device; KFD_VRAM_SIZE_CHECK=0 does not look");
	candidates.usage[GPU].vram_free = candidates.usage[GPU + 1].vram_free = 200 * GIB;
	assert_int_equal(choose(&process), 0);
}

/* ---- one process after the other ---- */

/* Three GPUs of which two are linked by XGMI; @only: the process has no other. */
static void linked_pair(struct topology *t, unsigned int nr, uint32_t first_id, unsigned int pair, unsigned int only)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!only || only == i + 1)
			add_gpu(t, GPU + i, first_id + i, 0);
	if (!only)
		link_hive(t, GPU + pair, 2);
	must(topology_finish(t));
}

/* The first process has one GPU of a hive of two, the second one both: the first must not take the lone one. */
FIXTURE_TEST(match_leaves_room_for_the_process_with_the_most_gpus)
{
	_cleanup_topology_ struct topology *first = machine_new(2);
	struct match_process process = { .machine = local, .options = &options, .choices = &choices, .largest = saved };

	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	linked_pair(local, 3, 0xb0, 1, 0);
	linked_pair(saved, 2, 0xa0, 0, 0);
	linked_pair(first, 2, 0x70, 0, 1);
	process.saved = first;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0x70, 0xb1);
	match_remember(&choices, &map->pairs[0]);
	process.saved = saved;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb2);
	/* Where the larger one has no map at all, each is on its own. */
	memset(&choices, 0, sizeof(choices));
	strcpy(candidates.reason[GPU + 1], "it is somebody's");
	process.saved = first;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0x70, 0xb0);
}

UNIT_MAIN(NULL, NULL)
