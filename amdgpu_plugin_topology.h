/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Topology: the nodes of a machine or of an image, and their links. kernel/sysfs.c fills it from sysfs, image/nodes.c
 * from an image. A property that a source does not have is absent, which is not the same as 0. Names, formats and
 * values of properties are those of the KFD's sysfs.
 */
#ifndef AMDGPU_PLUGIN_TOPOLOGY_H
#define AMDGPU_PLUGIN_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPOLOGY_MAX_NODES 256
#define TOPOLOGY_MAX_LINKS (4 * TOPOLOGY_MAX_NODES) /* of one node: io_links, p2p_links and duplicates */
#define TOPOLOGY_NAME_MAX  64

/* What a node has, in the order in which nodes are compared. */
enum topology_prop {
	TOPOLOGY_GPU_ID, /* 0: no GPU, or one that the process could not see */
	TOPOLOGY_CPU_CORES_COUNT,
	TOPOLOGY_VENDOR_ID,
	TOPOLOGY_DEVICE_ID,
	TOPOLOGY_GFX_TARGET_VERSION, /* major * 10000 + minor * 100 + stepping */
	TOPOLOGY_NUM_XCC,
	TOPOLOGY_SIMD_COUNT,
	TOPOLOGY_SIMD_PER_CU,
	TOPOLOGY_CU_PER_SIMD_ARRAY,
	TOPOLOGY_SIMD_ARRAYS_PER_ENGINE,
	TOPOLOGY_ARRAY_COUNT,
	TOPOLOGY_MAX_WAVES_PER_SIMD,
	TOPOLOGY_MAX_SLOTS_SCRATCH_CU,
	TOPOLOGY_WAVE_FRONT_SIZE,
	TOPOLOGY_LDS_SIZE_IN_KB,
	TOPOLOGY_NUM_SDMA_ENGINES,
	TOPOLOGY_NUM_SDMA_XGMI_ENGINES,
	TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE,
	TOPOLOGY_NUM_CP_QUEUES,
	TOPOLOGY_VRAM_PUBLIC, /* 1: the CPU can see all of the VRAM */
	TOPOLOGY_VRAM_SIZE,   /* bytes */
	TOPOLOGY_NUM_GWS,
	TOPOLOGY_CACHES_COUNT,
	TOPOLOGY_FW_VERSION,
	TOPOLOGY_SDMA_FW_VERSION,
	TOPOLOGY_CAPABILITY,
	TOPOLOGY_MEM_BANKS_COUNT,
	TOPOLOGY_IO_LINKS_COUNT,
	TOPOLOGY_LOCATION_ID, /* PCI bus << 8 | device << 3 | function */
	TOPOLOGY_DOMAIN,      /* PCI domain */
	TOPOLOGY_DRM_RENDER_MINOR,
	TOPOLOGY_HIVE_ID,
	TOPOLOGY_UNIQUE_ID,
	/*
	 * Which partition of its device a GPU is. Saved only where the process has SDMA queues on the GPU: their
	 * doorbells depend on the partition, so RESTORE needs the same one.
	 */
	TOPOLOGY_SDMA_PARTITION,
	TOPOLOGY_NUMA_NODE, /* id of the CPU node that the GPU belongs to; derived by topology_finish() */
	TOPOLOGY_NR_PROPS,
};

enum topology_format { TOPOLOGY_DECIMAL, TOPOLOGY_HEX, TOPOLOGY_BYTES };

/* One row of the table of properties. */
struct topology_prop_info {
	const char *name;   /* as in the file "properties", if it is there */
	unsigned int bits;  /* width: 1, 32 or 64 */
	bool in_properties; /* false: from another file, or derived */
	enum topology_format format;
};

/* Values of topology_link.type; others occur and are kept. */
enum topology_link_type { TOPOLOGY_LINK_PCIE = 2, TOPOLOGY_LINK_XGMI = 11 };

#define TOPOLOGY_LINK_FLAG_ENABLED	 (1U << 0)
#define TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 (1U << 2)
#define TOPOLOGY_LINK_FLAG_NO_ATOMICS_64 (1U << 3)
#define TOPOLOGY_LINK_FLAG_NO_P2P_DMA	 (1U << 4)

/* One direction of a link. */
struct topology_link {
	uint32_t type;
	uint32_t node_to_id; /* topology_node.id of the peer */
	bool is_p2p;	     /* from p2p_links; else from io_links */
	bool has_weight;
	bool has_bandwidth;
	bool has_flags;
	uint32_t weight;
	uint32_t min_bandwidth; /* MB/s, 0: the kernel does not know */
	uint32_t max_bandwidth;
	uint32_t flags;
	int to; /* index of the peer in topology.nodes[]; set by topology_finish() */
};

struct topology_node {
	uint32_t id;	  /* number in sysfs, or node id of the image */
	uint64_t present; /* bit per property */
	uint64_t value[TOPOLOGY_NR_PROPS];
	char name[TOPOLOGY_NAME_MAX]; /* ASIC name, may be empty */
	unsigned int nr_links;
	struct topology_link *links;
};

struct topology {
	unsigned int nr_nodes;
	unsigned int nr_hidden; /* nodes that the device cgroup hides; not in nodes[] */
	struct topology_node *nodes[TOPOLOGY_MAX_NODES];
};

/* An empty topology, NULL when out of memory. */
struct topology *topology_new(void);

/* Accepts NULL. */
void topology_free(struct topology *t);

static inline void topology_cleanup(struct topology **t)
{
	topology_free(*t);
}
#define _cleanup_topology_ __attribute__((cleanup(topology_cleanup)))

/*
 * Adds an empty node, owned by the topology. -EEXIST: the id is taken; -E2BIG: TOPOLOGY_MAX_NODES; -ENOMEM. No message.
 */
int topology_add_node(struct topology *t, uint32_t id, struct topology_node **ret);

/* Sets a property and marks it present. -ERANGE: does not fit the property's width. No message. */
int topology_node_set(struct topology_node *node, enum topology_prop prop, uint64_t value);

void topology_node_unset(struct topology_node *node, enum topology_prop prop);

/* Takes out the node that was added last. */
void topology_remove_last(struct topology *t);

/* Adds a copy of the link; .to is ignored. -E2BIG: more links than nodes could give; -ENOMEM. No message. */
int topology_node_add_link(struct topology_node *node, const struct topology_link *link);

/*
 * Ends the building: resolves node_to_id, drops links that lead nowhere, and derives TOPOLOGY_NUMA_NODE where it is
 * absent and the links tell it. -EEXIST after fail() when two nodes have one gpu id.
 */
int topology_finish(struct topology *t);

static inline bool topology_has(const struct topology_node *node, enum topology_prop prop)
{
	return node->present >> prop & 1;
}

/* The property's value, 0 when absent. */
static inline uint64_t topology_get(const struct topology_node *node, enum topology_prop prop)
{
	return node->value[prop];
}

static inline uint32_t topology_gpu_id(const struct topology_node *node)
{
	return (uint32_t)node->value[TOPOLOGY_GPU_ID];
}

/* The render minor, which is also the name that a saved GPU has in all processes of a dump. */
static inline uint32_t topology_minor(const struct topology_node *node)
{
	return (uint32_t)node->value[TOPOLOGY_DRM_RENDER_MINOR];
}

static inline bool topology_is_gpu(const struct topology_node *node)
{
	return topology_gpu_id(node) != 0;
}

/* True for CPU nodes, and for the node of an APU that is CPU and GPU in one. */
static inline bool topology_has_cpu(const struct topology_node *node)
{
	return node->value[TOPOLOGY_CPU_CORES_COUNT] != 0;
}

/* Index in nodes[], or -ENODEV. gpu_id 0 is never found. */
int topology_find_gpu(const struct topology *t, uint32_t gpu_id);
int topology_find_minor(const struct topology *t, uint32_t render_minor);

/* Whether the GPU may be one of several partitions of its device: gfx9.4.3 and later of gfx9. */
bool topology_may_be_partition(const struct topology_node *node);

/* Whether two GPUs are one device of PCI: the same one, or partitions of it. */
bool topology_same_device(const struct topology_node *a, const struct topology_node *b);

/* Whether another node of @t is of the same device of PCI as @node. */
bool topology_shares_device(const struct topology *t, const struct topology_node *node);

unsigned int topology_count_gpus(const struct topology *t);

/* The table's row; prop must be a property. */
const struct topology_prop_info *topology_prop_info(enum topology_prop prop);

/* Writes a value as people read it ("64 GiB", "0x740c", "90402"); TOPOLOGY_VALUE_TEXT_MAX bytes suffice. */
#define TOPOLOGY_VALUE_TEXT_MAX 32
void topology_value_text(enum topology_prop prop, uint64_t value, char *text, size_t size);

/* How much of a GPU of this machine others use. */
struct gpu_usage {
	bool has_queues;    /* of any process that uses the KFD, or soon of one that is restored */
	bool vram_known;    /* vram_free says something */
	uint64_t vram_free; /* bytes of the whole device, whatever its partitions */
};

/* What a process of the images works on, of one of its GPUs. A process sees GPUs that it never uses: {}. */
struct gpu_work {
	uint64_t vram_needed; /* bytes */
	bool has_queues;
	uint64_t vram_later;  /* bytes that a resume allocates besides: GPUs with room for them, too, are preferred */
};

/* How people name a GPU. */
enum device_ref_kind {
	DEVICE_REF_GPU_ID,
	DEVICE_REF_RENDER_MINOR,
	DEVICE_REF_PCI, /* domain << 32 | bus << 8 | device << 3 | function */
};

struct device_ref {
	enum device_ref_kind kind;
	uint64_t value;
};

/* This saved GPU becomes that local one. */
struct device_map_entry {
	struct device_ref saved;
	struct device_ref local;
};

/* Index in nodes[] of the GPU; -ENODEV: there is none; -EEXIST: several have this name. */
int topology_find_ref(const struct topology *t, const struct device_ref *ref);

/* Writes the name as people do; needs DEVICE_REF_TEXT_MAX bytes. */
#define DEVICE_REF_TEXT_MAX 32
void device_ref_text(const struct device_ref *ref, char *text, size_t size);

#endif
