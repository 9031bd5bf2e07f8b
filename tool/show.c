// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint show: processes, their GPUs and buffers, what they share, and the other files. Each buffer and mapping is
 * shown by protoc --decode, with criu-amdgpu.proto.
 */
#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"
#include "tool/images.h"

/* ---- values in words ---- */

const char *gfx_text(const struct topology_node *node, char text[NODE_TEXT_MAX])
{
	unsigned int gfx = (unsigned int)topology_get(node, TOPOLOGY_GFX_TARGET_VERSION);

	text[0] = '\0';
	if (topology_has(node, TOPOLOGY_GFX_TARGET_VERSION))
		snprintf(text, NODE_TEXT_MAX, "gfx%u%x%x", gfx / 10000, gfx / 100 % 100, gfx % 100);
	return text;
}

/* From libdrm's list, "ID,\tREVISION,\tNAME"; else the KFD's name: some ids are those of several products. */
const char *product_text(const struct topology_node *node, char text[PRODUCT_TEXT_MAX])
{
	_cleanup_fclose_ FILE *f = fopen("/usr/share/libdrm/amdgpu.ids", "re");
	char line[256], name[PRODUCT_TEXT_MAX];
	unsigned int id, nr = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%x, %*x, %63[^\n]", &id, name) == 2 &&
		    id == topology_get(node, TOPOLOGY_DEVICE_ID) && !nr++)
			snprintf(text, PRODUCT_TEXT_MAX, "%s", name);
	if (nr != 1)
		snprintf(text, PRODUCT_TEXT_MAX, "%s", node->name);
	return text;
}

const char *pci_text(const struct topology_node *node, char text[NODE_TEXT_MAX])
{
	uint64_t domain = topology_get(node, TOPOLOGY_DOMAIN), location = topology_get(node, TOPOLOGY_LOCATION_ID);
	struct device_ref ref = { DEVICE_REF_PCI, domain << 32 | (location & 0xffff) };

	text[0] = '\0';
	if (topology_has(node, TOPOLOGY_LOCATION_ID))
		device_ref_text(&ref, text, NODE_TEXT_MAX);
	return text;
}

/* ---- a process ---- */

/* What is unknown is null, and no text. */
static void print_number_if(bool is_known, const char *key, const char *before, uint64_t number)
{
	if (is_known)
		print_number(key, before, number);
	else
		print_null(key);
}

static void print_prop(const char *key, const char *before, const struct topology_node *node, enum topology_prop prop)
{
	print_number_if(topology_has(node, prop), key, before, topology_get(node, prop));
}

/* A process without /dev/kfd has none. */
static bool knows_objects(const struct gpu_process *kfd)
{
	return kfd->no_kfd || kfd->state.is_known;
}

/* @gpu_id: 0: of all. */
static void print_queues(const char *before, const struct gpu_process *kfd, uint32_t gpu_id)
{
	unsigned int compute = 0, sdma = 0;

	if (!knows_objects(kfd)) {
		print_null("queues");
		return;
	}
	for (uint32_t i = 0; i < kfd->state.nr_queues; i++) {
		const struct queue_record *queue = &kfd->state.queues[i];

		if (gpu_id && queue->gpu_id != gpu_id)
			continue;
		compute += queue->type == QUEUE_TYPE_COMPUTE;
		sdma += queue->type != QUEUE_TYPE_COMPUTE;
	}
	print_object("queues");
	print_number("compute", before, compute);
	print_number("sdma", ", SDMA ", sdma);
	print_end();
}

static void print_gpu(const struct images *images, const struct image_file *file, const struct topology_node *node)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} kinds[] = {
		{ "VRAM", KFD_IOC_ALLOC_MEM_FLAGS_VRAM },	{ "GTT", KFD_IOC_ALLOC_MEM_FLAGS_GTT },
		{ "userptr", KFD_IOC_ALLOC_MEM_FLAGS_USERPTR }, { "doorbell", KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL },
		{ "MMIO", KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP }, { "other", UINT32_MAX },
	};
	const struct kfd_state *state = &file->kfd->state;
	uint32_t gpu_id = topology_gpu_id(node), before = 0;
	struct buffer_data data = buffer_data_of(state, gpu_id);
	const struct image_file *pages = images_find(images, IMAGE_PAGES, file->is.id, gpu_id);
	char text[NODE_TEXT_MAX], product[PRODUCT_TEXT_MAX];

	print_object(NULL);
	print_id("gpu_id", "  gpu ", gpu_id);
	print_string("name", "   ", node->name);
	print_string("gfx", " ", gfx_text(node, text));
	product_text(node, product);
	print_string("product", strcmp(product, node->name) ? ", " : NULL, product);
	print_id("vendor_id", ", vendor ", topology_get(node, TOPOLOGY_VENDOR_ID));
	print_id("device_id", ", device ", topology_get(node, TOPOLOGY_DEVICE_ID));
	print_bytes("vram_bytes", ", VRAM ", topology_get(node, TOPOLOGY_VRAM_SIZE));
	print_number("render_minor", "; at dump renderD", topology_get(node, TOPOLOGY_DRM_RENDER_MINOR));
	print_string("pci", ", ", pci_text(node, text));
	print_prop("firmware", "\n    firmware   ", node, TOPOLOGY_FW_VERSION);
	print_prop("sdma_firmware", ", SDMA ", node, TOPOLOGY_SDMA_FW_VERSION);
	print_prop("xccs", "\n    partition  XCCs: ", node, TOPOLOGY_NUM_XCC);
	print_prop("sdma_partition", ", number ", node, TOPOLOGY_SDMA_PARTITION);
	if (topology_get(node, TOPOLOGY_UNIQUE_ID))
		print_address("unique_id", NULL, topology_get(node, TOPOLOGY_UNIQUE_ID));
	else
		print_null("unique_id");
	print_queues("\n    queues     compute ", file->kfd, gpu_id);
	print_object("contents");
	print_bytes("content_bytes", "\n    data       ", data.bytes);
	print_number("buffers_number", NULL, data.nr);
	print_string("file", " in ", pages ? pages->name : NULL);
	print_text("%s\n", !pages && data.nr ? ", and their file is missing" : "");
	print_end();
	print_array("buffers");
	/* A buffer is of the first kind whose flag it has. */
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); before |= kinds[kind++].flag) {
		bool is_other = kind + 1 == ARRAY_SIZE(kinds);
		uint64_t nr = 0, bytes = 0;

		for (const struct bo *bo = state->bos; bo < state->bos + state->nr_bos; bo++)
			if (bo->gpu_id == gpu_id && !(bo->alloc_flags & before) &&
			    (is_other || bo->alloc_flags & kinds[kind].flag)) {
				nr++;
				bytes += bo->size;
			}
		if (!nr)
			continue;
		print_object(NULL);
		print_string("kind", "    ", kinds[kind].name);
		print_number("number", ": ", nr);
		print_bytes("bytes", ", ", bytes);
		print_text("\n");
		print_end();
	}
	print_end();
	print_end();
}

static void print_suspended(const struct images *images, const struct gpu_process *kfd)
{
	const struct image_file *record = images_find(images, IMAGE_SUSPENDED, (int)kfd->state.pid, 0);

	bool is_known = kfd->is_suspended && record && record->suspended;

	print_bool("is_suspended", kfd->is_suspended);
	print_text("%s", kfd->is_suspended ? "  suspended    needs a resume after the restore" : "");
	print_text("%s", kfd->is_suspended && !is_known ? "; its record is missing or damaged" : "");
	if (is_known)
		print_bytes("freed_bytes", "; buffers that are freed: ", record->suspended->freed_bytes);
	else
		print_null("freed_bytes");
	print_text("%s", kfd->is_suspended ? "\n" : "");
}

static void print_process(const struct images *images, const struct image_file *file)
{
	static const char *const versions[] = { [10] = "3.17 to 3.19", [12] = "4.0 or 4.1", [13] = "4.2" };
	const struct gpu_process *kfd = file->kfd;
	const struct image_writer *writer = &kfd->writer;
	unsigned int hooks = writer->criu_hooks;
	bool is_known = knows_objects(kfd);
	size_t nr_shared = 0;

	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		nr_shared += kfd->state.bos[i].share.buffer != 0;
	print_object(NULL);
	print_number("pid", "\nprocess ", kfd->state.pid);
	print_text("%s", kfd->no_kfd ? ", without /dev/kfd" : "");
	print_string("file", "   ", file->name);
	print_text("\n");
	print_object("writer");
	print_string("plugin", "  written by   plugin ", writer->plugin);
	print_string("criu", ", criu ", hooks < ARRAY_SIZE(versions) ? versions[hooks] : "later than 4.2");
	print_number("criu_hooks", hooks ? ", criu's hooks: " : NULL, hooks);
	print_string("kernel", ", Linux ", writer->kernel);
	print_string("driver", ", driver: ", writer->driver);
	print_text(writer->plugin[0] ? "\n" : "  written by   unknown\n");
	print_end();
	print_bool("checksum", kfd->has_crc32c);
	print_bool("render_only", kfd->no_kfd);
	print_suspended(images, kfd);
	print_number("state_bytes", NULL, kfd->state.priv_size);
	print_number("objects", "  objects      ", kfd->state.nr_objects);
	print_queues("; queues: compute ", kfd, 0);
	print_text("%s", is_known ? "" : " (unknown layout)");
	print_number_if(is_known, "events", ", events: ", kfd->state.nr_events);
	print_number_if(is_known, "svm_ranges", ", SVM ranges: ", kfd->state.nr_ranges);
	print_number_if(kfd->nr_vmas > 0, "mappings", "\n  mappings     ", kfd->nr_vmas);
	print_text("\n");
	print_number("sharers", kfd->nr_sharers ? "  sharing      processes that take part: " : NULL, kfd->nr_sharers);
	print_number("shared_buffers", kfd->nr_sharers ? ", buffers of this one: " : NULL, nr_shared);
	print_text("%s", kfd->nr_sharers ? "\n" : "");
	print_array("gpus");
	for (unsigned int i = 0; i < kfd->nodes->nr_nodes; i++)
		if (topology_is_gpu(kfd->nodes->nodes[i]))
			print_gpu(images, file, kfd->nodes->nodes[i]);
	print_end();
	print_end();
}

int command_show(const struct arguments *arguments)
{
	_cleanup_(images_done) struct images images;
	size_t nr_others = 0;

	if (images_open(arguments->path, &images))
		return TOOL_FAIL;
	print_string("path", "", images.path);
	print_number("files_number", ": files: ", images.nr);
	print_text("\n");
	print_array("processes");
	for (size_t i = 0; i < images.nr; i++)
		if (image_is_process(&images.files[i]))
			print_process(&images, &images.files[i]);
	print_end();
	print_array("files");
	for (size_t i = 0; i < images.nr; i++) {
		if (image_is_process(&images.files[i]))
			continue;
		print_text("%s", nr_others++ ? "" : "\nfiles:\n");
		print_object(NULL);
		print_string("name", "  ", images.files[i].name);
		print_bytes("bytes", ", ", images.files[i].size);
		print_string("problem", ": ", images.files[i].problem);
		print_text("\n");
		print_end();
	}
	print_end();
	return images_status(&images);
}
