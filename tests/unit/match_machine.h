/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machines for the tests and benchmarks of the matcher, built node by node.
 * CPU nodes have the ids 0, 1, ...; a GPU is added with its node id.
 */
#ifndef UNIT_MATCH_MACHINE_H
#define UNIT_MATCH_MACHINE_H

#include "match/match.h"
#include "amdgpu_plugin_util.h"

#define GIB (1ULL << 30)

/* Builders end the program: a test that cannot be built has no result. */
static inline void must(int r)
{
	if (r < 0) {
		fprintf(stderr, "building a machine: %s\n", strerror(-r));
		exit(2);
	}
}

static inline void set_prop(struct topology_node *node, enum topology_prop prop, uint64_t value)
{
	must(topology_node_set(node, prop, value));
}

static inline void clear_prop(struct topology_node *node, enum topology_prop prop)
{
	node->present &= ~(1ULL << prop);
	node->value[prop] = 0;
}

static inline struct topology_node *node_of(const struct topology *t, uint32_t id)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (t->nodes[i]->id == id)
			return t->nodes[i];
	}
	must(-ENODEV);
	return NULL;
}

static inline struct topology *machine_new(uint32_t n_cpus)
{
	struct topology *t = topology_new();

	must(t ? 0 : -ENOMEM);
	for (uint32_t i = 0; i < n_cpus; i++) {
		struct topology_node *node;

		must(topology_add_node(t, i, &node));
		set_prop(node, TOPOLOGY_GPU_ID, 0);
		set_prop(node, TOPOLOGY_CPU_CORES_COUNT, 32);
	}
	return t;
}

/* One direction. */
static inline void link_one_way(struct topology *t, uint32_t from, uint32_t to, uint32_t type, uint32_t bandwidth)
{
	must(topology_node_add_link(node_of(t, from), &(struct topology_link){ .type = type,
									       .node_to_id = to,
									       .has_weight = true,
									       .weight = 20,
									       .has_bandwidth = true,
									       .max_bandwidth = bandwidth,
									       .has_flags = true,
									       .flags = TOPOLOGY_LINK_FLAG_ENABLED }));
}

static inline void link_both(struct topology *t, uint32_t a, uint32_t b, uint32_t type, uint32_t bandwidth)
{
	link_one_way(t, a, b, type, bandwidth);
	link_one_way(t, b, a, type, bandwidth);
}

/* The node ids from "first" on, n of them, all linked to each other. */
static inline void link_hive(struct topology *t, uint32_t first, unsigned int n)
{
	for (uint32_t a = first; a < first + n; a++) {
		for (uint32_t b = a + 1; b < first + n; b++)
			link_both(t, a, b, TOPOLOGY_LINK_XGMI, 50000);
	}
}

/* A GPU with all properties, linked to that CPU node in both directions (none when it is not there). */
static inline struct topology_node *add_gpu(struct topology *t, uint32_t id, uint32_t gpu_id, uint32_t cpu)
{
	struct topology_node *node;

	must(topology_add_node(t, id, &node));
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		if (i != TOPOLOGY_NUMA_NODE)
			set_prop(node, i, topology_prop_info(i)->bits == 1 ? 1 : 16);
	}
	set_prop(node, TOPOLOGY_GPU_ID, gpu_id);
	set_prop(node, TOPOLOGY_CPU_CORES_COUNT, 0);
	set_prop(node, TOPOLOGY_VENDOR_ID, 0x1002);
	set_prop(node, TOPOLOGY_DEVICE_ID, 0x740c);
	set_prop(node, TOPOLOGY_GFX_TARGET_VERSION, 90010);
	set_prop(node, TOPOLOGY_VRAM_SIZE, 64 * GIB);
	set_prop(node, TOPOLOGY_CAPABILITY, 0x2c00a280);
	set_prop(node, TOPOLOGY_DOMAIN, 0);
	set_prop(node, TOPOLOGY_LOCATION_ID, gpu_id << 8);
	set_prop(node, TOPOLOGY_DRM_RENDER_MINOR, 128 + id);
	if (cpu < t->nr_nodes && topology_has_cpu(node_of(t, cpu)))
		link_both(t, id, cpu, TOPOLOGY_LINK_PCIE, 0);
	return node;
}

#endif
