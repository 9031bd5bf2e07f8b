// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nodes of an image: between struct topology and the protobuf message. What is read is not believed.
 */
#include "image/internal.h"

/* The properties of struct topology and where they are in the message. */
#define ENTRY_PROPERTIES(X)                                                                           \
	X(GPU_ID, gpu_id) X(CPU_CORES_COUNT, cpu_cores_count) X(SIMD_COUNT, simd_count)               \
	X(MEM_BANKS_COUNT, mem_banks_count) X(CACHES_COUNT, caches_count)                             \
	X(IO_LINKS_COUNT, io_links_count) X(MAX_WAVES_PER_SIMD, max_waves_per_simd)                   \
	X(LDS_SIZE_IN_KB, lds_size_in_kb) X(NUM_GWS, num_gws) X(WAVE_FRONT_SIZE, wave_front_size)     \
	X(ARRAY_COUNT, array_count) X(SIMD_ARRAYS_PER_ENGINE, simd_arrays_per_engine)                 \
	X(CU_PER_SIMD_ARRAY, cu_per_simd_array) X(SIMD_PER_CU, simd_per_cu)                           \
	X(MAX_SLOTS_SCRATCH_CU, max_slots_scratch_cu) X(VENDOR_ID, vendor_id)                         \
	X(DEVICE_ID, device_id) X(DOMAIN, domain) X(DRM_RENDER_MINOR, drm_render_minor)               \
	X(HIVE_ID, hive_id) X(NUM_SDMA_ENGINES, num_sdma_engines)                                     \
	X(NUM_SDMA_XGMI_ENGINES, num_sdma_xgmi_engines)                                               \
	X(NUM_SDMA_QUEUES_PER_ENGINE, num_sdma_queues_per_engine) X(NUM_CP_QUEUES, num_cp_queues)     \
	X(FW_VERSION, fw_version) X(CAPABILITY, capability) X(SDMA_FW_VERSION, sdma_fw_version)       \
	X(VRAM_PUBLIC, vram_public) X(VRAM_SIZE, vram_size)

#define OPTIONAL_ENTRY_PROPERTIES(X)                                                                  \
	X(GFX_TARGET_VERSION, gfx_target_version) X(NUM_XCC, num_xcc) X(UNIQUE_ID, unique_id)         \
	X(LOCATION_ID, location_id) X(SDMA_PARTITION, sdma_partition)

void packing_done(struct packing *packing)
{
	for (size_t i = 0; i < packing->nr_blocks; i++)
		free(packing->blocks[i]);
	free(packing->blocks);
}

void *packing_add(struct packing *packing, size_t count, const ProtobufCMessageDescriptor *type)
{
	void **pointers = calloc(count + 1, sizeof(*pointers) + type->sizeof_message);
	char *messages = (char *)(pointers + count);

	if (!pointers || array_add(packing->blocks, packing->nr_blocks, pointers)) {
		free(pointers);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		pointers[i] = messages + i * type->sizeof_message;
		protobuf_c_message_init(type, pointers[i]);
	}
	return pointers;
}

#define LINK_FIELDS(X)                                                                                \
	X(type) X(node_to_id) X(has_weight) X(weight) X(min_bandwidth) X(max_bandwidth) X(has_flags) X(flags)

/* Those of one kind. */
static DevIolink **pack_links(struct packing *packing, const struct topology_node *node, bool p2p, size_t *ret_count)
{
	DevIolink **links = packing_add(packing, node->nr_links, &dev_iolink__descriptor);

	for (unsigned int i = 0; links && i < node->nr_links; i++) {
		const struct topology_link *from = &node->links[i];
		DevIolink *to = links[*ret_count];

		if (from->is_p2p != p2p)
			continue;
		LINK_FIELDS(COPY)
		to->has_min_bandwidth = to->has_max_bandwidth = from->has_bandwidth;
		++*ret_count;
	}
	return links;
}

static int pack_node(struct packing *packing, const struct topology_node *node, KfdDeviceEntry *entry)
{
	entry->node_id = node->id;
#define X(prop, field) entry->field = (__typeof__(entry->field))topology_get(node, TOPOLOGY_##prop);
	ENTRY_PROPERTIES(X)
	OPTIONAL_ENTRY_PROPERTIES(X)
#undef X
#define X(prop, field) entry->has_##field = topology_has(node, TOPOLOGY_##prop);
	OPTIONAL_ENTRY_PROPERTIES(X)
#undef X
	entry->name = node->name[0] ? (char *)node->name : NULL;
	entry->iolinks = pack_links(packing, node, false, &entry->n_iolinks);
	entry->p2p_links = pack_links(packing, node, true, &entry->n_p2p_links);
	return entry->iolinks && entry->p2p_links ? 0 : -ENOMEM;
}

KfdDeviceEntry **nodes_pack(struct packing *packing, const struct topology *nodes)
{
	KfdDeviceEntry **entries = packing_add(packing, nodes->nr_nodes, &kfd_device_entry__descriptor);

	for (unsigned int i = 0; entries && i < nodes->nr_nodes; i++)
		if (pack_node(packing, nodes->nodes[i], entries[i]))
			return NULL;
	return entries;
}

static int set_properties(const KfdDeviceEntry *entry, struct topology_node *node)
{
	int err;

#define X(prop, field)                                                            \
	err = topology_node_set(node, TOPOLOGY_##prop, entry->field);             \
	if (err)                                                                  \
		return err;
	ENTRY_PROPERTIES(X)
#undef X
#define X(prop, field)                                                            \
	err = entry->has_##field ? topology_node_set(node, TOPOLOGY_##prop, entry->field) : 0; \
	if (err)                                                                  \
		return err;
	OPTIONAL_ENTRY_PROPERTIES(X)
#undef X
	return 0;
}

static int unpack_links(DevIolink **links, size_t nr, bool p2p, struct topology_node *node)
{
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		struct topology_link link = { .is_p2p = p2p }, *to = &link;
		const DevIolink *from = links[i];

		LINK_FIELDS(COPY)
		link.has_bandwidth = from->has_min_bandwidth && from->has_max_bandwidth;
		err = topology_node_add_link(node, &link);
	}
	return err;
}

static int unpack_node(const KfdDeviceEntry *entry, struct topology *nodes)
{
	struct topology_node *node;
	int err = topology_add_node(nodes, entry->node_id, &node);

	if (err)
		return err;
	if (entry->name)
		snprintf(node->name, sizeof(node->name), "%s", entry->name);
	err = set_properties(entry, node);
	if (err)
		return err;
	err = unpack_links(entry->iolinks, entry->n_iolinks, false, node);
	if (err)
		return err;
	return unpack_links(entry->p2p_links, entry->n_p2p_links, true, node);
}

int nodes_unpack(const char *name, KfdDeviceEntry **entries, size_t count, struct topology **ret)
{
	_cleanup_topology_ struct topology *nodes = topology_new();

	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int err = unpack_node(entries[i], nodes);

		if (err)
			return bad_image(name, "node %u: %s", entries[i]->node_id, strerror(-err));
	}
	if (topology_finish(nodes))
		return fail_in(-EBADMSG, "image %s", name);
	*ret = steal_ptr(nodes);
	return 0;
}
