// SPDX-License-Identifier: GPL-2.0-only
/* Topology: the table of node properties, what they are called and how wide they are; nodes are built and found. */
#include <inttypes.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"

#define PROP(name_, format_)	       { .name = name_, .bits = 32, .in_properties = true, .format = TOPOLOGY_##format_ }
#define PROP_WIDE(name_)	       { .name = name_, .bits = 64, .in_properties = true, .format = TOPOLOGY_HEX }
#define DERIVED(name_, bits_, format_) { .name = name_, .bits = bits_, .format = TOPOLOGY_##format_ }

/*
 * The partition mode (SPX, DPX, CPX, ...) is not a property of its own: for
 * one device id, num_xcc and the counts that follow from it tell it.
 */
static const struct topology_prop_info prop_infos[TOPOLOGY_NR_PROPS] = {
	[TOPOLOGY_GPU_ID] = DERIVED("gpu_id", 32, HEX),
	[TOPOLOGY_CPU_CORES_COUNT] = PROP("cpu_cores_count", DECIMAL),
	[TOPOLOGY_VENDOR_ID] = PROP("vendor_id", HEX),
	[TOPOLOGY_DEVICE_ID] = PROP("device_id", HEX),
	[TOPOLOGY_GFX_TARGET_VERSION] = PROP("gfx_target_version", DECIMAL),
	[TOPOLOGY_NUM_XCC] = PROP("num_xcc", DECIMAL),
	[TOPOLOGY_SIMD_COUNT] = PROP("simd_count", DECIMAL),
	[TOPOLOGY_SIMD_PER_CU] = PROP("simd_per_cu", DECIMAL),
	[TOPOLOGY_CU_PER_SIMD_ARRAY] = PROP("cu_per_simd_array", DECIMAL),
	[TOPOLOGY_SIMD_ARRAYS_PER_ENGINE] = PROP("simd_arrays_per_engine", DECIMAL),
	[TOPOLOGY_ARRAY_COUNT] = PROP("array_count", DECIMAL),
	[TOPOLOGY_MAX_WAVES_PER_SIMD] = PROP("max_waves_per_simd", DECIMAL),
	[TOPOLOGY_MAX_SLOTS_SCRATCH_CU] = PROP("max_slots_scratch_cu", DECIMAL),
	[TOPOLOGY_WAVE_FRONT_SIZE] = PROP("wave_front_size", DECIMAL),
	[TOPOLOGY_LDS_SIZE_IN_KB] = PROP("lds_size_in_kb", DECIMAL),
	[TOPOLOGY_NUM_SDMA_ENGINES] = PROP("num_sdma_engines", DECIMAL),
	[TOPOLOGY_NUM_SDMA_XGMI_ENGINES] = PROP("num_sdma_xgmi_engines", DECIMAL),
	[TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE] = PROP("num_sdma_queues_per_engine", DECIMAL),
	[TOPOLOGY_NUM_CP_QUEUES] = PROP("num_cp_queues", DECIMAL),
	[TOPOLOGY_VRAM_PUBLIC] = DERIVED("vram_public", 1, DECIMAL),
	[TOPOLOGY_VRAM_SIZE] = DERIVED("vram_size", 64, BYTES),
	[TOPOLOGY_NUM_GWS] = PROP("num_gws", DECIMAL),
	[TOPOLOGY_CACHES_COUNT] = PROP("caches_count", DECIMAL),
	[TOPOLOGY_FW_VERSION] = PROP("fw_version", DECIMAL),
	[TOPOLOGY_SDMA_FW_VERSION] = PROP("sdma_fw_version", DECIMAL),
	[TOPOLOGY_CAPABILITY] = PROP("capability", HEX),
	[TOPOLOGY_MEM_BANKS_COUNT] = PROP("mem_banks_count", DECIMAL),
	[TOPOLOGY_IO_LINKS_COUNT] = PROP("io_links_count", DECIMAL),
	[TOPOLOGY_LOCATION_ID] = PROP("location_id", HEX),
	[TOPOLOGY_DOMAIN] = PROP("domain", HEX),
	[TOPOLOGY_DRM_RENDER_MINOR] = PROP("drm_render_minor", DECIMAL),
	[TOPOLOGY_HIVE_ID] = PROP_WIDE("hive_id"),
	[TOPOLOGY_UNIQUE_ID] = PROP_WIDE("unique_id"),
	[TOPOLOGY_SDMA_PARTITION] = DERIVED("partition_of_sdma_queues", 32, DECIMAL),
	[TOPOLOGY_NUMA_NODE] = DERIVED("numa_node", 32, DECIMAL),
};

_Static_assert(TOPOLOGY_NR_PROPS <= 64, "topology_node.present has a bit per property");

const struct topology_prop_info *topology_prop_info(enum topology_prop prop)
{
	return &prop_infos[prop];
}

void topology_value_text(enum topology_prop prop, uint64_t value, char *text, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	enum topology_format format = prop_infos[prop].format;
	size_t unit = 0;

	if (format != TOPOLOGY_BYTES) {
		snprintf(text, size, format == TOPOLOGY_HEX ? "%#" PRIx64 : "%" PRIu64, value);
		return;
	}
	/* Only exact multiples are shortened: two different sizes never look the same. */
	while (unit + 1 < ARRAY_SIZE(units) && value && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	snprintf(text, size, "%" PRIu64 " %s", value, units[unit]);
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

void topology_node_unset(struct topology_node *node, enum topology_prop prop)
{
	node->value[prop] = 0;
	node->present &= ~(1ULL << prop);
}

void topology_remove_last(struct topology *t)
{
	struct topology_node *node = t->nodes[--t->nr_nodes];

	free(node->links);
	free(node);
}

static int find_node(const struct topology *t, uint32_t id)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i]->id == id)
			return (int)i;
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
	struct topology_link unresolved = *link;

	unresolved.to = -1;
	return node->nr_links == TOPOLOGY_MAX_LINKS ? -E2BIG : array_add(node->links, node->nr_links, unresolved);
}

/*
 * The CPU node that a GPU hangs on is the one its lightest link leads to, of several the lowest. Older
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
		if (!best || link->weight < best->weight ||
		    (link->weight == best->weight && t->nodes[link->to]->id < t->nodes[best->to]->id))
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

		if (first >= 0 && first != (int)i)
			return fail(-EEXIST, "topology: nodes %u and %u have the same gpu id %#x", t->nodes[first]->id,
				    t->nodes[i]->id, topology_gpu_id(t->nodes[i]));
	}
	/* The peers; links that lead nowhere are taken out. */
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		struct topology_node *node = t->nodes[i];
		unsigned int kept = 0;

		for (unsigned int k = 0; k < node->nr_links; k++) {
			int to = find_node(t, node->links[k].node_to_id);

			if (to < 0 || to == (int)i)
				continue;
			node->links[kept] = node->links[k];
			node->links[kept++].to = to;
		}
		node->nr_links = kept;
	}
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
		if (topology_is_gpu(t->nodes[i]) && topology_minor(t->nodes[i]) == render_minor)
			return (int)i;
	}
	return -ENODEV;
}

bool topology_may_be_partition(const struct topology_node *node)
{
	uint64_t gfx = topology_get(node, TOPOLOGY_GFX_TARGET_VERSION);

	return topology_is_gpu(node) && gfx >= 90400 && gfx < 100000 && topology_has(node, TOPOLOGY_LOCATION_ID);
}

/* The driver puts the number of a partition into the function bits of location_id. */
bool topology_same_device(const struct topology_node *a, const struct topology_node *b)
{
	unsigned int shift = topology_may_be_partition(a) && topology_may_be_partition(b) ? 3 : 0;

	if (!topology_has(a, TOPOLOGY_LOCATION_ID) || !topology_has(b, TOPOLOGY_LOCATION_ID))
		return a == b;
	return topology_get(a, TOPOLOGY_DOMAIN) == topology_get(b, TOPOLOGY_DOMAIN) &&
	       topology_get(a, TOPOLOGY_LOCATION_ID) >> shift == topology_get(b, TOPOLOGY_LOCATION_ID) >> shift;
}

bool topology_shares_device(const struct topology *t, const struct topology_node *node)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i] != node && topology_same_device(t->nodes[i], node))
			return true;
	return false;
}

unsigned int topology_count_gpus(const struct topology *t)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		count += topology_is_gpu(t->nodes[i]);
	return count;
}

static bool ref_names_node(const struct device_ref *ref, const struct topology_node *node)
{
	/* Above bus, device and function there may be the number of a partition, which has no address of its own. */
	uint64_t location = topology_get(node, TOPOLOGY_LOCATION_ID) & 0xffff;
	uint64_t pci = topology_get(node, TOPOLOGY_DOMAIN) << 32 | location;

	switch (ref->kind) {
	case DEVICE_REF_RENDER_MINOR:
		return topology_has(node, TOPOLOGY_DRM_RENDER_MINOR) &&
		       topology_get(node, TOPOLOGY_DRM_RENDER_MINOR) == ref->value;
	case DEVICE_REF_PCI:
		return topology_has(node, TOPOLOGY_LOCATION_ID) && pci == ref->value;
	default:
		return topology_gpu_id(node) == ref->value;
	}
}

int topology_find_ref(const struct topology *t, const struct device_ref *ref)
{
	int found = -ENODEV;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (!topology_is_gpu(t->nodes[i]) || !ref_names_node(ref, t->nodes[i]))
			continue;
		if (found >= 0)
			return -EEXIST;
		found = (int)i;
	}
	return found;
}

void device_ref_text(const struct device_ref *ref, char *text, size_t size)
{
	unsigned int low = (unsigned int)(ref->value & 0xffff);

	switch (ref->kind) {
	case DEVICE_REF_RENDER_MINOR:
		snprintf(text, size, "renderD%u", (unsigned int)ref->value);
		break;
	case DEVICE_REF_PCI:
		snprintf(text, size, "%04x:%02x:%02x.%x", (unsigned int)(ref->value >> 32), low >> 8, low >> 3 & 0x1f,
			 low & 7);
		break;
	default:
		snprintf(text, size, "0x%x", (unsigned int)ref->value);
	}
}
