// SPDX-License-Identifier: GPL-2.0-only
/*
 * Topology: the table of node properties and the structure.
 *
 * What a property is called, how wide it is, how two GPUs are compared by it
 * and which setting relaxes that is said once, here. kernel/sysfs.c
 * fills the structure from sysfs, the image module from a saved image.
 */
#include <inttypes.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"

#define PROP(name_, rule_, format_)                                                                \
	{                                                                                          \
		.name = (name_), .bits = 32, .in_properties = true, .rule = TOPOLOGY_RULE_##rule_, \
		.relaxed_by = SETTING_NONE, .format = TOPOLOGY_##format_                           \
	}
#define PROP_RELAXED(name_, rule_, format_, setting_)                                              \
	{                                                                                          \
		.name = (name_), .bits = 32, .in_properties = true, .rule = TOPOLOGY_RULE_##rule_, \
		.relaxed_by = SETTING_##setting_, .format = TOPOLOGY_##format_                     \
	}
#define PROP_WIDE(name_)                                                                        \
	{                                                                                       \
		.name = (name_), .bits = 64, .in_properties = true, .rule = TOPOLOGY_RULE_NONE, \
		.relaxed_by = SETTING_NONE, .format = TOPOLOGY_HEX                              \
	}

/*
 * The partition shape (SPX, DPX, CPX, ...) is not a property of its own: for
 * one device id it shows in num_xcc and in the counts that follow from it.
 */
static const struct topology_prop_info prop_infos[TOPOLOGY_NR_PROPS] = {
	[TOPOLOGY_GPU_ID] = { "gpu_id", 32, false, TOPOLOGY_RULE_NONE, SETTING_NONE, TOPOLOGY_HEX },
	[TOPOLOGY_CPU_CORES_COUNT] = PROP("cpu_cores_count", NONE, DECIMAL),
	[TOPOLOGY_VENDOR_ID] = PROP("vendor_id", EQUAL, HEX),
	[TOPOLOGY_DEVICE_ID] = PROP("device_id", EQUAL, HEX),
	[TOPOLOGY_GFX_TARGET_VERSION] = PROP("gfx_target_version", EQUAL, DECIMAL),
	[TOPOLOGY_NUM_XCC] = PROP("num_xcc", EQUAL, DECIMAL),
	[TOPOLOGY_SIMD_COUNT] = PROP("simd_count", EQUAL, DECIMAL),
	[TOPOLOGY_SIMD_PER_CU] = PROP("simd_per_cu", EQUAL, DECIMAL),
	[TOPOLOGY_CU_PER_SIMD_ARRAY] = PROP("cu_per_simd_array", EQUAL, DECIMAL),
	[TOPOLOGY_SIMD_ARRAYS_PER_ENGINE] = PROP("simd_arrays_per_engine", EQUAL, DECIMAL),
	[TOPOLOGY_ARRAY_COUNT] = PROP("array_count", EQUAL, DECIMAL),
	[TOPOLOGY_MAX_WAVES_PER_SIMD] = PROP("max_waves_per_simd", EQUAL, DECIMAL),
	[TOPOLOGY_MAX_SLOTS_SCRATCH_CU] = PROP("max_slots_scratch_cu", EQUAL, DECIMAL),
	[TOPOLOGY_WAVE_FRONT_SIZE] = PROP("wave_front_size", EQUAL, DECIMAL),
	[TOPOLOGY_LDS_SIZE_IN_KB] = PROP("lds_size_in_kb", EQUAL, DECIMAL),
	[TOPOLOGY_NUM_SDMA_ENGINES] = PROP("num_sdma_engines", EQUAL, DECIMAL),
	[TOPOLOGY_NUM_SDMA_XGMI_ENGINES] = PROP("num_sdma_xgmi_engines", EQUAL, DECIMAL),
	[TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE] = PROP("num_sdma_queues_per_engine", EQUAL, DECIMAL),
	[TOPOLOGY_NUM_CP_QUEUES] = PROP("num_cp_queues", EQUAL, DECIMAL),
	[TOPOLOGY_VRAM_PUBLIC] = { "vram_public", 1, false, TOPOLOGY_RULE_EQUAL, SETTING_NONE, TOPOLOGY_DECIMAL },
	[TOPOLOGY_VRAM_SIZE] = { "vram_size", 64, false, TOPOLOGY_RULE_AT_LEAST, SETTING_VRAM_SIZE_CHECK,
				 TOPOLOGY_BYTES },
	[TOPOLOGY_NUM_GWS] = PROP_RELAXED("num_gws", AT_LEAST, DECIMAL, NUM_GWS_CHECK),
	[TOPOLOGY_CACHES_COUNT] = PROP_RELAXED("caches_count", AT_LEAST, DECIMAL, CACHES_COUNT_CHECK),
	[TOPOLOGY_FW_VERSION] = PROP_RELAXED("fw_version", AT_LEAST, DECIMAL, FW_VER_CHECK),
	[TOPOLOGY_SDMA_FW_VERSION] = PROP_RELAXED("sdma_fw_version", AT_LEAST, DECIMAL, SDMA_FW_VER_CHECK),
	[TOPOLOGY_CAPABILITY] = PROP_RELAXED("capability", CAPABILITY, HEX, CAPABILITY_CHECK),
	[TOPOLOGY_MEM_BANKS_COUNT] = PROP("mem_banks_count", NONE, DECIMAL),
	[TOPOLOGY_IO_LINKS_COUNT] = PROP("io_links_count", NONE, DECIMAL),
	[TOPOLOGY_LOCATION_ID] = PROP("location_id", NONE, HEX),
	[TOPOLOGY_DOMAIN] = PROP("domain", NONE, HEX),
	[TOPOLOGY_DRM_RENDER_MINOR] = PROP("drm_render_minor", NONE, DECIMAL),
	[TOPOLOGY_HIVE_ID] = PROP_WIDE("hive_id"),
	[TOPOLOGY_UNIQUE_ID] = PROP_WIDE("unique_id"),
	[TOPOLOGY_NUMA_NODE] = { "numa_node", 32, false, TOPOLOGY_RULE_NONE, SETTING_NONE, TOPOLOGY_DECIMAL },
};

_Static_assert(TOPOLOGY_NR_PROPS <= 64, "topology_node.present has a bit per property");

/*
 * The bits of "capability". Compared are those by which the ROCm runtime or
 * compiled code chooses what it does. Not compared are those that the kernel
 * computes for a debugger, a monitor or its own use: they differ between two
 * kernels on one GPU.
 */
static const struct {
	uint32_t bits;
	const char *name;
	bool compared;
} capability_bits[] = {
	{ 0x00000001, "hot pluggable", false }, /* says nothing of the GPU at work */
	{ 0x00000002, "ATS", true },		/* host memory is reached by host page tables */
	{ 0x00000004, "shared with graphics", false },
	{ 0x00000008, "queue size power of 2", true }, /* rings that user space allocated */
	{ 0x00000010, "queue size 32 bit", true },
	{ 0x00000020, "idle event", false },   /* nobody asks for it */
	{ 0x00000040, "VA limit", true },      /* layout of the address space */
	{ 0x00000080, "watch points", false }, /* debugger; computed when read */
	{ 0x00000f00, "watch point count", false },
	{ 0x00003000, "doorbell type", true },	      /* 32 or 64 bit doorbells are written */
	{ 0x00004000, "AQL queue double map", true }, /* ring layout */
	{ 0x00078000, "trap debug", false },	      /* debugger; depends on the kernel */
	{ 0x00100000, "memory EDC", false },	      /* monitoring; computed when read */
	{ 0x00200000, "RAS event notification", false },
	{ 0x03c00000, "ASIC revision", true },	      /* libraries choose kernels by it */
	{ 0x04000000, "SRAM EDC", true },	      /* part of the code object target (sramecc) */
	{ 0x08000000, "SVM", true },		      /* the runtime manages memory by it */
	{ 0x10000000, "coherent host access", true }, /* fine-grained memory */
	{ 0x20000000, "trap debug firmware", false },
	{ 0x40000000, "precise ALU", false },
	{ 0x80000000, "per queue reset", false }, /* what the kernel does after a hang */
};

const struct topology_prop_info *topology_prop_info(enum topology_prop prop)
{
	return &prop_infos[prop];
}

uint32_t topology_capability_mask(void)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(capability_bits); i++) {
		if (capability_bits[i].compared)
			mask |= capability_bits[i].bits;
	}
	return mask;
}

const char *topology_capability_name(uint32_t bits)
{
	for (size_t i = 0; i < ARRAY_SIZE(capability_bits); i++) {
		if (capability_bits[i].bits & bits)
			return capability_bits[i].name;
	}
	return "?";
}

static void bytes_text(uint64_t value, char *text, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	/* Only exact multiples are shortened: two different sizes never look the same. */
	while (unit + 1 < ARRAY_SIZE(units) && value && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	snprintf(text, size, "%" PRIu64 " %s", value, units[unit]);
}

void topology_value_text(enum topology_prop prop, uint64_t value, char *text, size_t size)
{
	switch (prop_infos[prop].format) {
	case TOPOLOGY_HEX:
		snprintf(text, size, "%#" PRIx64, value);
		break;
	case TOPOLOGY_BYTES:
		bytes_text(value, text, size);
		break;
	default:
		snprintf(text, size, "%" PRIu64, value);
	}
}

const char *topology_link_type_name(uint32_t type)
{
	switch (type) {
	case TOPOLOGY_LINK_HT:
		return "HT";
	case TOPOLOGY_LINK_PCIE:
		return "PCIe";
	case TOPOLOGY_LINK_QPI:
		return "QPI";
	case TOPOLOGY_LINK_XGMI:
		return "XGMI";
	default:
		return "unknown link";
	}
}

struct topology *topology_new(void)
{
	return calloc(1, sizeof(struct topology));
}

void topology_free(struct topology *t)
{
	if (!t)
		return;
	while (t->nr_nodes)
		topology_remove_last(t);
	free(t);
}

void topology_remove_last(struct topology *t)
{
	struct topology_node *node = t->nodes[--t->nr_nodes];

	free(node->links);
	free(node);
}

static int find_node(const struct topology *t, uint32_t id)
{
	/* Nearly always nodes are numbered without gaps. */
	if (id < t->nr_nodes && t->nodes[id]->id == id)
		return (int)id;
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (t->nodes[i]->id == id)
			return (int)i;
	}
	return -ENODEV;
}

int topology_add_node(struct topology *t, uint32_t id, struct topology_node **ret)
{
	struct topology_node *node;

	if (find_node(t, id) >= 0)
		return -EEXIST;
	if (t->nr_nodes == TOPOLOGY_MAX_NODES)
		return -E2BIG;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->id = id;
	t->nodes[t->nr_nodes++] = node;
	*ret = node;
	return 0;
}

int topology_node_set(struct topology_node *node, enum topology_prop prop, uint64_t value)
{
	unsigned int bits = prop_infos[prop].bits;

	if (bits < 64 && value >> bits)
		return -ERANGE;
	node->value[prop] = value;
	node->present |= 1ULL << prop;
	return 0;
}

int topology_node_add_link(struct topology_node *node, const struct topology_link *link)
{
	unsigned int room = node->links_allocated;
	struct topology_link *links;

	if (node->nr_links == TOPOLOGY_MAX_LINKS)
		return -E2BIG;
	if (node->nr_links == room) {
		room = room ? 2 * room : 8;
		links = reallocarray(node->links, room, sizeof(*links));
		if (!links)
			return -ENOMEM;
		node->links = links;
		node->links_allocated = room;
	}
	node->links[node->nr_links] = *link;
	node->links[node->nr_links++].to = -1;
	return 0;
}

/* Resolves the peers; links that lead nowhere are taken out. */
static void resolve_links(struct topology *t, unsigned int index)
{
	struct topology_node *node = t->nodes[index];
	unsigned int kept = 0;

	for (unsigned int i = 0; i < node->nr_links; i++) {
		int to = find_node(t, node->links[i].node_to_id);

		if (to < 0 || to == (int)index) {
			t->nr_dropped_links++;
			continue;
		}
		node->links[kept] = node->links[i];
		node->links[kept++].to = to;
	}
	node->nr_links = kept;
}

/* Is link a a better sign of where a GPU belongs than link b? */
static bool link_is_nearer(const struct topology *t, const struct topology_link *a, const struct topology_link *b)
{
	if (a->weight != b->weight)
		return a->weight < b->weight;
	return t->nodes[a->to]->id < t->nodes[b->to]->id;
}

/*
 * The CPU node that a GPU hangs on is the one its lightest link leads to. Older
 * kernels list links to all CPU nodes: without weights these tell nothing.
 */
static void derive_numa_node(const struct topology *t, struct topology_node *node)
{
	const struct topology_link *best = NULL;
	bool unsure = false;

	for (unsigned int i = 0; i < node->nr_links; i++) {
		const struct topology_link *link = &node->links[i];

		if (!topology_has_cpu(t->nodes[link->to]))
			continue;
		if (best && best->to != link->to && !(best->has_weight && link->has_weight))
			unsure = true;
		if (!best || link_is_nearer(t, link, best))
			best = link;
	}
	if (topology_has_cpu(node))
		topology_node_set(node, TOPOLOGY_NUMA_NODE, node->id);
	else if (best && !unsure)
		topology_node_set(node, TOPOLOGY_NUMA_NODE, t->nodes[best->to]->id);
}

int topology_finish(struct topology *t)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		int first = topology_find_gpu(t, topology_gpu_id(t->nodes[i]));

		if (first >= 0 && first != (int)i) {
			pr_err("topology: nodes %u and %u have the same gpu id %#x", t->nodes[first]->id,
			       t->nodes[i]->id, topology_gpu_id(t->nodes[i]));
			return -EEXIST;
		}
	}
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		resolve_links(t, i);
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (topology_is_gpu(t->nodes[i]) && !topology_has(t->nodes[i], TOPOLOGY_NUMA_NODE))
			derive_numa_node(t, t->nodes[i]);
	}
	return 0;
}

int topology_find_gpu(const struct topology *t, uint32_t gpu_id)
{
	for (unsigned int i = 0; gpu_id && i < t->nr_nodes; i++) {
		if (topology_gpu_id(t->nodes[i]) == gpu_id)
			return (int)i;
	}
	return -ENODEV;
}

int topology_find_minor(const struct topology *t, uint32_t render_minor)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (topology_is_gpu(t->nodes[i]) &&
		    topology_get(t->nodes[i], TOPOLOGY_DRM_RENDER_MINOR) == render_minor)
			return (int)i;
	}
	return -ENODEV;
}

unsigned int topology_count_gpus(const struct topology *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		n += topology_is_gpu(t->nodes[i]);
	return n;
}
