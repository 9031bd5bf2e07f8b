// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher: each rule, each option, the cases that broke an earlier matcher,
 * links, NUMA nodes, and images of other writers.
 */
#define _GNU_SOURCE
#include "unit.h"
#include "match_fixture.h"

/* ---- properties ---- */

FIXTURE_TEST(match_accepts_an_equal_gpu_under_other_names)
{
	plain_machines(1, 1);
	set_prop(node_of(local, GPU), TOPOLOGY_DRM_RENDER_MINOR, 200);
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, 1);
	assert_pair(0, 0xa0, 0xb0);
	assert_int_equal(map->pairs[0].saved, 2);
	assert_int_equal(map->pairs[0].local, 2);
	assert_int_equal(map->pairs[0].saved_minor, 130);
	assert_int_equal(map->pairs[0].local_minor, 200);
}

FIXTURE_TEST(match_of_no_gpus_is_empty)
{
	plain_machines(0, 2);
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, 0);
}

/* The rule of each property: what of less, equal and more does, and what accepts less. */
static const struct {
	enum topology_prop prop;
	bool more;
	const char *setting;
	enum match_check check;
} ruled[] = {
	{ .prop = TOPOLOGY_VENDOR_ID },
	{ .prop = TOPOLOGY_DEVICE_ID },
	{ .prop = TOPOLOGY_GFX_TARGET_VERSION },
	{ .prop = TOPOLOGY_NUM_XCC },
	{ .prop = TOPOLOGY_SIMD_COUNT },
	{ .prop = TOPOLOGY_SIMD_PER_CU },
	{ .prop = TOPOLOGY_CU_PER_SIMD_ARRAY },
	{ .prop = TOPOLOGY_SIMD_ARRAYS_PER_ENGINE },
	{ .prop = TOPOLOGY_ARRAY_COUNT },
	{ .prop = TOPOLOGY_MAX_WAVES_PER_SIMD },
	{ .prop = TOPOLOGY_MAX_SLOTS_SCRATCH_CU },
	{ .prop = TOPOLOGY_WAVE_FRONT_SIZE },
	{ .prop = TOPOLOGY_LDS_SIZE_IN_KB },
	{ .prop = TOPOLOGY_NUM_SDMA_ENGINES },
	{ .prop = TOPOLOGY_NUM_SDMA_XGMI_ENGINES },
	{ .prop = TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE },
	{ .prop = TOPOLOGY_NUM_CP_QUEUES },
	{ .prop = TOPOLOGY_VRAM_PUBLIC },
	{ .prop = TOPOLOGY_SDMA_PARTITION },
	{ TOPOLOGY_VRAM_SIZE, true, "KFD_VRAM_SIZE_CHECK", MATCH_CHECK_VRAM_SIZE },
	{ TOPOLOGY_NUM_GWS, true, "KFD_NUM_GWS_CHECK", MATCH_CHECK_NUM_GWS },
	{ TOPOLOGY_CACHES_COUNT, true, "KFD_CACHES_COUNT_CHECK", MATCH_CHECK_CACHES_COUNT },
	{ TOPOLOGY_FW_VERSION, true, "KFD_FW_VER_CHECK", MATCH_CHECK_FW_VERSION },
	{ TOPOLOGY_SDMA_FW_VERSION, true, "KFD_SDMA_FW_VER_CHECK", MATCH_CHECK_SDMA_FW_VERSION },
};

FIXTURE_TEST(match_applies_the_rule_of_every_property)
{
	bool seen[TOPOLOGY_NR_PROPS] = { [TOPOLOGY_GPU_ID] = true, [TOPOLOGY_CAPABILITY] = true };

	plain_machines(1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ruled); i++) {
		uint64_t *value = &node_of(local, GPU)->value[ruled[i].prop];

		seen[ruled[i].prop] = true;
		*value -= 1;
		assert_refused(topology_prop_info(ruled[i].prop)->name, "wanted");
		*value += 2;
		assert_int_equal(match(), ruled[i].more ? 0 : -ENODEV);
		*value -= 1;
		assert_int_equal(match(), 0);
	}
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		if (seen[i])
			continue;
		node_of(local, GPU)->value[i]++;
		assert_int_equal(match(), 0);
	}
}

FIXTURE_TEST(match_relaxes_what_an_option_relaxes)
{
	char text[64];

	plain_machines(1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ruled); i++) {
		if (!ruled[i].setting)
			continue;
		node_of(local, GPU)->value[ruled[i].prop] = 0;
		snprintf(text, sizeof(text), "(%s=0 accepts it)", ruled[i].setting);
		assert_refused(topology_prop_info(ruled[i].prop)->name, text);
		options.relaxed[ruled[i].check] = true;
		assert_int_equal(match(), 0);
		options.relaxed[ruled[i].check] = false;
		node_of(local, GPU)->value[ruled[i].prop] = node_of(saved, GPU)->value[ruled[i].prop];
	}
	node_of(local, GPU)->value[TOPOLOGY_CAPABILITY] = 0;
	assert_refused("capability", "(KFD_CAPABILITY_CHECK=0 accepts it)");
	options.relaxed[MATCH_CHECK_CAPABILITY] = true;
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_ignores_what_the_image_does_not_have)
{
	plain_machines(1, 1);
	for (unsigned int i = TOPOLOGY_VENDOR_ID; i < TOPOLOGY_NR_PROPS; i++) {
		node_of(local, GPU)->value[i] = ~node_of(saved, GPU)->value[i];
		clear_prop(node_of(saved, GPU), i);
	}
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_compares_capability_bits_that_user_space_acts_on)
{
	/* ATS, queue sizes, VA limit, doorbell type, double map, ASIC revision, SRAM EDC, SVM, coherent host access */
	const uint32_t compared = 0x1fc0705a;

	plain_machines(1, 1);
	for (unsigned int bit = 0; bit < 32; bit++) {
		uint32_t capability = 0x2c00a280 ^ 1U << bit;

		set_prop(node_of(local, GPU), TOPOLOGY_CAPABILITY, capability);
		assert_int_equal(match(), compared >> bit & 1 ? -ENODEV : 0);
	}
	set_prop(node_of(local, GPU), TOPOLOGY_CAPABILITY, 0x2800a280);
	assert_refused("capability", "SRAM EDC");
}

/* ---- an earlier matcher's failures ---- */

FIXTURE_TEST(match_finds_three_gpus_of_different_vram)
{
	static const uint64_t src[] = { 32, 16, 24 }, dst[] = { 24, 16, 32 };

	plain_machines(3, 3);
	set_all(saved, TOPOLOGY_VRAM_SIZE, src, 3);
	set_all(local, TOPOLOGY_VRAM_SIZE, dst, 3);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(1, 0xa1, 0xb1);
	assert_pair(2, 0xa2, 0xb0);
}

FIXTURE_TEST(match_finds_four_gpus_of_different_vram)
{
	static const uint64_t src[] = { 48, 32, 24, 16 }, dst[] = { 48, 16, 32, 48 };

	plain_machines(4, 4);
	set_all(saved, TOPOLOGY_VRAM_SIZE, src, 4);
	set_all(local, TOPOLOGY_VRAM_SIZE, dst, 4);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa1, 0xb2);
	assert_pair(2, 0xa2, 0xb3);
	assert_pair(3, 0xa3, 0xb1);
}

FIXTURE_TEST(match_finds_numa_nodes_swapped)
{
	numa_machines("110", "100");
	assert_int_equal(match(), 0);
	/* The two that were on one node, on one node. */
	assert_int_equal(actual_of(0xa0), 0xb1);
	assert_int_equal(actual_of(0xa1), 0xb2);
	assert_int_equal(actual_of(0xa2), 0xb0);
}

FIXTURE_TEST(match_ends_when_numa_nodes_cannot_be_kept)
{
	numa_machines("0000", "0100");
	assert_refused("NUMA", "KFD_NUMA_CHECK=0 does not look at NUMA nodes");
	options.relaxed[MATCH_CHECK_NUMA] = true;
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_finds_64_gpus)
{
	plain_machines(64, 64);
	link_hive(saved, GPU, 64);
	link_hive(local, GPU, 64);
	assert_int_equal(match(), 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_pair(i, 0xa0 + i, 0xb000 + i);
}

FIXTURE_TEST(match_describes_64_gpus_within_its_bounds)
{
	plain_machines(64, 64);
	for (uint32_t i = 0; i < 64; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, 1000000007 + i);
	assert_refused("64 of 64 saved GPUs fit no local GPU", "vram_size, wanted at least 64 GiB");
	assert_report("0xb00f (1000000022 bytes)");
	assert_report("...");
}

FIXTURE_TEST(match_finds_as_many_gpus_as_a_topology_has)
{
	plain_machines(TOPOLOGY_MAX_NODES - 2, TOPOLOGY_MAX_NODES - 2);
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, TOPOLOGY_MAX_NODES - 2);
}

FIXTURE_TEST(match_survives_links_to_absent_nodes)
{
	plain_machines(2, 2);
	link_one_way(saved, GPU, 77, TOPOLOGY_LINK_XGMI, 1000);
	link_one_way(saved, 0, 78, TOPOLOGY_LINK_PCIE, 0);
	link_one_way(local, GPU, 79, TOPOLOGY_LINK_PCIE, 0);
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_swaps_two_hives)
{
	plain_machines(8, 8);
	for (uint32_t i = 0; i < 4; i++) {
		set_prop(node_of(saved, GPU + i), TOPOLOGY_DEVICE_ID, 1);
		set_prop(node_of(saved, GPU + 4 + i), TOPOLOGY_DEVICE_ID, 2);
		set_prop(node_of(local, GPU + i), TOPOLOGY_DEVICE_ID, 2);
		set_prop(node_of(local, GPU + 4 + i), TOPOLOGY_DEVICE_ID, 1);
	}
	for (uint32_t hive = 0; hive < 2; hive++) {
		link_hive(saved, GPU + 4 * hive, 4);
		link_hive(local, GPU + 4 * hive, 4);
	}
	assert_int_equal(match(), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_pair(i, 0xa0 + i, 0xb0 + (i + 4) % 8);
}

/* A count of the whole machine's links says nothing about one GPU of it. */
FIXTURE_TEST(match_moves_one_gpu_from_a_machine_of_eight_to_one_of_four)
{
	add_gpu(saved, GPU, 0xa0, 0);
	set_prop(node_of(saved, GPU), TOPOLOGY_IO_LINKS_COUNT, 8);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(local, GPU + i, 0xb0 + i, i / 2);
	link_hive(local, GPU, 4);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb0);
}

/* ---- hives and peer links ---- */

/* Partial links inside two hives: 0-1-2, 3-4-5. */
static void two_chains(struct topology *t, uint32_t first_id)
{
	for (uint32_t i = 0; i < 6; i++)
		add_gpu(t, GPU + i, first_id + i, i / 3);
	for (uint32_t i = 0; i < 6; i += 3) {
		link_both(t, GPU + i, GPU + i + 1, TOPOLOGY_LINK_XGMI, 50000);
		link_both(t, GPU + i + 1, GPU + i + 2, TOPOLOGY_LINK_XGMI, 50000);
	}
}

FIXTURE_TEST(match_keeps_partial_links_inside_hives)
{
	two_chains(saved, 0xa0);
	two_chains(local, 0xb0);
	assert_int_equal(match(), 0);
	assert_pair(1, 0xa1, 0xb1);
	assert_pair(4, 0xa4, 0xb4);
}

FIXTURE_TEST(match_refuses_hives_with_types_at_other_places)
{
	two_chains(saved, 0xa0);
	two_chains(local, 0xb0);
	/* The one in the middle is of another kind; here it is one at the end. */
	set_prop(node_of(saved, GPU + 1), TOPOLOGY_DEVICE_ID, 1);
	set_prop(node_of(local, GPU + 2), TOPOLOGY_DEVICE_ID, 1);
	assert_refused("no choice of local GPUs", "KFD_NUMA_CHECK=0 does not look at NUMA nodes");
	assert_report("KFD_TOPOLOGY_CHECK=0 does not look at links");
	options.relaxed[MATCH_CHECK_TOPOLOGY] = true;
	assert_int_equal(match(), 0);
}

static void one_linked_gpu_per_hive(struct topology *t, uint32_t first_id, uint32_t hub)
{
	for (uint32_t i = 0; i < 6; i++)
		add_gpu(t, GPU + i, first_id + i, 0);
	for (uint32_t i = 0; i < 6; i++) {
		if (i != hub)
			link_both(t, GPU + hub, GPU + i, TOPOLOGY_LINK_PCIE, 0);
	}
}

FIXTURE_TEST(match_finds_the_linked_gpu_at_another_index)
{
	one_linked_gpu_per_hive(saved, 0xa0, 0);
	one_linked_gpu_per_hive(local, 0xb0, 4);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb4);
	assert_pair(1, 0xa1, 0xb0);
}

FIXTURE_TEST(match_refuses_a_one_way_link_to_the_host)
{
	add_gpu(saved, GPU, 0xa0, 0);
	add_gpu(local, GPU, 0xb0, 99);
	link_one_way(local, GPU, 0, TOPOLOGY_LINK_PCIE, 0);
	assert_refused("link from the host, wanted PCIe", "0xb0 (no link)");
	assert_report("KFD_TOPOLOGY_CHECK=0");
	options.relaxed[MATCH_CHECK_TOPOLOGY] = true;
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_refuses_pcie_where_the_host_had_xgmi)
{
	add_gpu(saved, GPU, 0xa0, 99);
	link_both(saved, GPU, 0, TOPOLOGY_LINK_XGMI, 0);
	add_gpu(local, GPU, 0xb0, 0);
	assert_refused("link to the host, wanted XGMI", "0xb0 (PCIe)");
}

FIXTURE_TEST(match_takes_a_hive_and_loose_gpus)
{
	plain_machines(8, 8);
	link_hive(saved, GPU, 4);
	link_hive(local, GPU + 4, 4);
	assert_int_equal(match(), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_pair(i, 0xa0 + i, 0xb0 + (i + 4) % 8);
}

FIXTURE_TEST(match_takes_types_at_other_positions)
{
	static const uint64_t src[] = { 1, 2, 3, 1, 2 }, dst[] = { 2, 3, 2, 1, 1 };

	plain_machines(5, 5);
	set_all(saved, TOPOLOGY_DEVICE_ID, src, 5);
	set_all(local, TOPOLOGY_DEVICE_ID, dst, 5);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb3);
	assert_pair(1, 0xa1, 0xb0);
	assert_pair(2, 0xa2, 0xb1);
	assert_pair(3, 0xa3, 0xb4);
	assert_pair(4, 0xa4, 0xb2);
}

FIXTURE_TEST(match_ignores_a_hive_that_is_too_many)
{
	plain_machines(4, 8);
	link_hive(saved, GPU, 4);
	link_hive(local, GPU, 4);
	link_hive(local, GPU + 4, 4);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb0);
}

FIXTURE_TEST(match_puts_a_hive_into_a_bigger_one)
{
	plain_machines(3, 8);
	link_hive(saved, GPU, 3);
	link_hive(local, GPU, 2);
	link_hive(local, GPU + 2, 6);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(2, 0xa2, 0xb4);
}

FIXTURE_TEST(match_refuses_a_broken_hive)
{
	plain_machines(4, 4);
	link_hive(saved, GPU, 4);
	link_hive(local, GPU, 2);
	link_hive(local, GPU + 2, 2);
	assert_refused("no choice of local GPUs keeps all links", "KFD_TOPOLOGY_CHECK=0 does not look at links");
	options.relaxed[MATCH_CHECK_TOPOLOGY] = true;
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_names_the_pair_whose_link_is_missing)
{
	plain_machines(2, 3);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	assert_refused("no two local GPUs that fit are as saved 0xa0 and 0xa1 were: linked by XGMI of 50000 MB/s",
		       "KFD_TOPOLOGY_CHECK=0 does not look at links");
}

FIXTURE_TEST(match_wants_the_bandwidth_of_an_xgmi_link)
{
	plain_machines(2, 4);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 100000);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	assert_refused("no two local GPUs", "linked by XGMI of 100000 MB/s");
	link_both(local, GPU + 2, GPU + 3, TOPOLOGY_LINK_XGMI, 200000);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
}

static void assert_untold_bandwidth_serves(struct topology *untold)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 100000);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	for (uint32_t i = 0; i < 2; i++) {
		struct topology_node *node = node_of(untold, GPU + i);

		for (unsigned int l = 0; l < node->nr_links; l++) {
			node->links[l].has_bandwidth = false;
			node->links[l].max_bandwidth = 0;
		}
	}
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_wants_no_bandwidth_that_the_image_does_not_tell)
{
	assert_untold_bandwidth_serves(saved);
}

FIXTURE_TEST(match_takes_a_link_whose_bandwidth_the_machine_does_not_tell)
{
	assert_untold_bandwidth_serves(local);
}

FIXTURE_TEST(match_lets_xgmi_serve_for_pcie_but_not_the_reverse)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	assert_refused("no two local GPUs", "linked by PCIe");
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_wants_links_in_the_saved_direction_only)
{
	plain_machines(2, 2);
	link_one_way(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	link_one_way(local, GPU + 1, GPU, TOPOLOGY_LINK_XGMI, 50000);
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb0);
	link_one_way(saved, GPU + 1, GPU, TOPOLOGY_LINK_XGMI, 50000);
	assert_refused("0xa0", "XGMI");
}

/* Two pairs whose links go out alike, and come in by another bandwidth. */
FIXTURE_TEST(match_tells_pairs_apart_by_the_way_back)
{
	plain_machines(4, 4);
	for (uint32_t pair = 0; pair < 4; pair += 2) {
		link_one_way(saved, GPU + pair, GPU + pair + 1, TOPOLOGY_LINK_XGMI, 50000);
		link_one_way(saved, GPU + pair + 1, GPU + pair, TOPOLOGY_LINK_XGMI, pair ? 100000 : 50000);
		link_one_way(local, GPU + pair, GPU + pair + 1, TOPOLOGY_LINK_XGMI, 50000);
		link_one_way(local, GPU + pair + 1, GPU + pair, TOPOLOGY_LINK_XGMI, pair ? 50000 : 100000);
	}
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(2, 0xa2, 0xb0);
}

/* The flags of every link from one node to another. */
static void set_flags(struct topology *t, uint32_t from, uint32_t to, uint32_t flags)
{
	struct topology_node *node = node_of(t, from);

	for (unsigned int i = 0; i < node->nr_links; i++) {
		if (node->links[i].node_to_id == to)
			node->links[i].flags = flags;
	}
}

FIXTURE_TEST(match_does_not_take_a_link_without_peer_access)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	set_flags(local, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_ENABLED | TOPOLOGY_LINK_FLAG_NO_P2P_DMA);
	assert_refused("no two local GPUs", "linked by PCIe");
	/* And does not want it where the saved one had none. */
	set_flags(saved, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_ENABLED | TOPOLOGY_LINK_FLAG_NO_P2P_DMA);
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_wants_atomics_that_were_there)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	set_flags(local, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	assert_refused("no two local GPUs", "linked by PCIe with atomics");
	set_flags(saved, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	set_flags(saved, GPU + 1, GPU, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	assert_int_equal(match(), 0);
	set_flags(local, GPU, 0, TOPOLOGY_LINK_FLAG_NO_ATOMICS_32);
	set_flags(local, GPU + 1, 0, TOPOLOGY_LINK_FLAG_NO_ATOMICS_32);
	assert_refused("link to the host, wanted PCIe", "(no atomics)");
}

/* ---- NUMA, candidates, images of other writers ---- */

FIXTURE_TEST(match_does_not_trust_an_unknown_numa_node)
{
	options.relaxed[MATCH_CHECK_TOPOLOGY] = true;
	add_gpu(saved, GPU, 0xa0, 1);
	add_gpu(saved, GPU + 1, 0xa1, 1);
	add_gpu(local, GPU, 0xb0, 99);
	add_gpu(local, GPU + 1, 0xb1, 99);
	assert_refused("as saved 0xa0 and 0xa1 were: on one NUMA node;", "KFD_NUMA_CHECK=0 does not look at NUMA nodes");
}

FIXTURE_TEST(match_uses_no_gpu_that_is_unusable)
{
	const char *unusable[TOPOLOGY_MAX_NODES] = { [GPU] = "first reason", [GPU + 2] = "second reason" };

	plain_machines(2, 4);
	options.unusable = unusable;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb3);
	unusable[GPU + 3] = "first reason";
	assert_refused("2 saved GPUs fit only 1 local GPUs", "3 more may not be used");
	assert_report("not used: 0xb0 0xb3: first reason");
	assert_report("not used: 0xb2: second reason");
	unusable[GPU + 1] = "first reason";
	local->nr_hidden = 5;
	assert_refused("to 0 local ones (4 more may not be used by the process, 5 are hidden)", "0xb0 0xb1 0xb3");
}

/* What the existing plugin of criu 3.17 to 4.2 stores. */
static void strip_to_old_image(struct topology *t)
{
	static const enum topology_prop added[] = { TOPOLOGY_GFX_TARGET_VERSION, TOPOLOGY_NUM_XCC, TOPOLOGY_UNIQUE_ID,
						    TOPOLOGY_LOCATION_ID, TOPOLOGY_NUMA_NODE };

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(added); k++)
			clear_prop(t->nodes[i], added[k]);
		for (unsigned int l = 0; l < t->nodes[i]->nr_links; l++) {
			struct topology_link *link = &t->nodes[i]->links[l];

			*link = (struct topology_link){ .type = link->type, .node_to_id = link->node_to_id };
		}
	}
}

FIXTURE_TEST(match_takes_images_of_criu_3_17_to_4_2)
{
	plain_machines(4, 4);
	link_hive(saved, GPU, 4);
	link_hive(local, GPU, 4);
	strip_to_old_image(saved);
	assert_int_equal(match(), 0);
	/* What they have is compared all the same. */
	set_prop(node_of(local, GPU), TOPOLOGY_FW_VERSION, 15);
	assert_refused("fw_version, wanted at least 16", "0xb0 (15)");
}

/* Their successors list GPUs that the process did not have with gpu_id 0, and no links to CPUs. */
FIXTURE_TEST(match_takes_images_with_nodes_without_gpu_id)
{
	plain_machines(3, 2);
	set_prop(node_of(saved, GPU + 1), TOPOLOGY_GPU_ID, 0);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 0);
	strip_to_old_image(saved);
	for (uint32_t i = 0; i < 2 + 3; i++)
		node_of(saved, i)->nr_links = 0;
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, 2);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa2, 0xb1);
}

FIXTURE_TEST(match_takes_partitions)
{
	plain_machines(4, 8);
	for (uint32_t i = 0; i < 4; i++) {
		set_prop(node_of(saved, GPU + i), TOPOLOGY_NUM_XCC, 1);
		set_prop(node_of(saved, GPU + i), TOPOLOGY_LOCATION_ID, 0x500 + i);
		set_prop(node_of(local, GPU + 4 + i), TOPOLOGY_NUM_XCC, 1);
		set_prop(node_of(local, GPU + 4 + i), TOPOLOGY_LOCATION_ID, 0x503 - i);
	}
	assert_int_equal(match(), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_pair(i, 0xa0 + i, 0xb7 - i);
	for (uint32_t i = 0; i < 4; i++)
		set_prop(node_of(local, GPU + 4 + i), TOPOLOGY_NUM_XCC, 2);
	assert_refused("num_xcc, wanted 1", "0xb0 0xb1 0xb2 0xb3 (16)");
}

UNIT_MAIN(NULL, NULL)
