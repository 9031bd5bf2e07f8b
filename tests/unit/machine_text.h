/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machines for tests, from a text, and node by node. CPUs are the nodes 0, 1, ...; GPUs follow. All that a text does
 * not tell is as on a machine on which everything works.
 */
#ifndef UNIT_MACHINE_TEXT_H
#define UNIT_MACHINE_TEXT_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"

#define GIB	 (1ULL << 30)
#define GPU_NODE 2 /* of a text: the first GPU; the CPUs are 0 and 1 */

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
static inline void add_link(struct topology *t, uint32_t from, const struct topology_link *link)
{
	must(topology_node_add_link(node_of(t, from), link));
}

static inline struct topology_link link_to(uint32_t to, uint32_t type, uint32_t bandwidth)
{
	return (struct topology_link){ .type = type,
				       .node_to_id = to,
				       .has_weight = true,
				       .weight = 20,
				       .has_bandwidth = true,
				       .max_bandwidth = bandwidth,
				       .has_flags = true,
				       .flags = TOPOLOGY_LINK_FLAG_ENABLED };
}

static inline void link_one_way(struct topology *t, uint32_t from, uint32_t to, uint32_t type, uint32_t bandwidth)
{
	struct topology_link link = link_to(to, type, bandwidth);

	add_link(t, from, &link);
}

static inline void link_both(struct topology *t, uint32_t a, uint32_t b, uint32_t type, uint32_t bandwidth)
{
	link_one_way(t, a, b, type, bandwidth);
	link_one_way(t, b, a, type, bandwidth);
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

/* ---- texts ---- */

/* Of GPUs, one value for all or one for each; without a value it is not there. */
static inline void read_prop(struct topology *t, const char *name, char *values)
{
	unsigned int prop = 0;
	char *next = values;

	while (strcmp(topology_prop_info(prop)->name, name))
		must(++prop < TOPOLOGY_NR_PROPS ? 0 : -EINVAL);
	for (uint32_t i = GPU_NODE; i < t->nr_nodes; i++) {
		uint64_t value = strtoull(next, &next, 0);

		if (*values)
			set_prop(t->nodes[i], prop, *next == 'G' ? value * GIB : value);
		else
			topology_node_unset(t->nodes[i], prop);
		next += *next == 'G';
		next = *next == ',' ? next + 1 : values;
	}
}

static inline void read_hives(struct topology *t, int first, int last)
{
	for (int a = first; a < last; a++)
		for (int b = a + 1; b <= last; b++)
			link_both(t, (uint32_t)(GPU_NODE + a), (uint32_t)(GPU_NODE + b), TOPOLOGY_LINK_XGMI, 50000);
}

/* What the last letters of a link say. */
static inline void read_flags(struct topology_link *link, const char *letters)
{
	link->has_bandwidth = !strchr(letters, '?');
	link->flags |= strchr(letters, 'd') ? TOPOLOGY_LINK_FLAG_NO_P2P_DMA : 0;
	link->flags |= strchr(letters, 's') ? TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 : 0;
	link->flags |= strchr(letters, 'l') ? TOPOLOGY_LINK_FLAG_NO_ATOMICS_64 : 0;
}

static inline void read_link(struct topology *t, const char *text)
{
	const char *letters = strchr(text, '!');
	struct topology_link link;
	uint32_t bandwidth;
	int first, last, at;
	char kind, how;

	must(sscanf(text, "%c%d%c%d%n", &kind, &first, &how, &last, &at) == 4 && strchr("-+>", how) ? 0 : -EINVAL);
	if (how == '-') {
		read_hives(t, first, last);
		return;
	}
	bandwidth = kind == 'x' ? 50000 : 0;
	sscanf(text + at, ":%u", &bandwidth);
	link = link_to((uint32_t)(GPU_NODE + last), kind == 'x' ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE, bandwidth);
	read_flags(&link, letters ? letters : "");
	add_link(t, (uint32_t)(GPU_NODE + first), &link);
	link.node_to_id = (uint32_t)(GPU_NODE + first);
	if (how == '+')
		add_link(t, (uint32_t)(GPU_NODE + last), &link);
}

static inline void read_token(struct topology *t, char *token)
{
	char *value = strchr(token, '=');
	int hive;

	if (value) {
		*value = '\0';
		read_prop(t, token, value + 1);
	} else if (sscanf(token, "x/%d", &hive) == 1) {
		for (int i = 0; i + hive <= (int)t->nr_nodes - GPU_NODE; i += hive)
			read_hives(t, i, i + hive - 1);
	} else {
		read_link(t, token);
	}
}

/*
 * A machine with two CPUs whose GPUs have the ids from @first_id on, to be freed by topology_free(); @text is a format.
 * First how many GPUs it has, all of CPU 0, or "@" and for each its CPU, "-" for none; then properties, as read_prop()
 * wants them; then links: x for XGMI (of 50000 MB/s unless that follows a colon), p for PCIe; "0-3" between all from 0
 * to 3 (a hive), "0+1" between two, "0>1" in one direction; GPUs count from 0, CPUs from -2; "x/4" are hives of four.
 * "!" and letters end a link: ? tells no bandwidth, d has no peer access, s and l no atomics of 32 and of 64 bits.
 */
static inline struct topology *__attribute__((format(printf, 2, 3)))
machine_of(uint32_t first_id, const char *text, ...)
{
	struct topology *t = machine_new(GPU_NODE);
	char copy[1024], *rest = copy, *token;
	bool has_cpus;
	va_list args;

	va_start(args, text);
	must(vsnprintf(copy, sizeof(copy), text, args) < (int)sizeof(copy) ? 0 : -E2BIG);
	va_end(args);
	token = strsep(&rest, " ");
	has_cpus = *token == '@';
	for (uint32_t i = 0, nr = has_cpus ? (uint32_t)strlen(token + 1) : (uint32_t)atoi(token); i < nr; i++)
		add_gpu(t, GPU_NODE + i, first_id + i, has_cpus ? (uint32_t)(token[1 + i] - '0') : 0);
	while ((token = strsep(&rest, " ")))
		read_token(t, token);
	must(topology_finish(t));
	return t;
}

#endif
