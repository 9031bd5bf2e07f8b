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
	bool busy[TOPOLOGY_MAX_NODES] = { [GPU] = true, [GPU + 1] = true };

	for (uint32_t i = 0; i < 2; i++)
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(local, GPU + i, 0xa0 + i, 0);
	options.busy = busy;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xa2);
	assert_pair(1, 0xa1, 0xa3);
	/* Where one has to be busy, the name decides which. */
	busy[GPU + 2] = true;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xa3);
	assert_pair(1, 0xa1, 0xa1);
}

/* Two idle GPUs in a hive do not help three linked ones: links come first. */
FIXTURE_TEST(match_prefers_links_to_idle_gpus)
{
	bool busy[TOPOLOGY_MAX_NODES] = { [GPU] = true, [GPU + 1] = true };

	plain_machines(3, 5);
	link_hive(saved, GPU, 3);
	link_hive(local, GPU, 3);
	link_hive(local, GPU + 3, 2);
	options.busy = busy;
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

UNIT_MAIN(NULL, NULL)
