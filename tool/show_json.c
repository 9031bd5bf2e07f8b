// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu-image --json show. Its schema is in amdgpu-image.txt. */
#include "amdgpu_plugin_util.h"
#include "tool/json.h"
#include "tool/show.h"

static void string_or_null(struct json *json, const char *key, const char *text)
{
	json_string(json, key, text && text[0] ? text : NULL);
}

/* null where the image does not have the property. */
static void number_of(struct json *json, const char *key, const struct topology_node *node, enum topology_prop prop)
{
	if (topology_has(node, prop))
		json_number(json, key, topology_get(node, prop));
	else
		json_null(json, key);
}

static void hex_of(struct json *json, const char *key, const struct topology_node *node, enum topology_prop prop)
{
	if (topology_has(node, prop))
		json_hex(json, key, topology_get(node, prop));
	else
		json_null(json, key);
}

static void write_writer(struct json *json, const struct image_writer *writer)
{
	json_object(json, "writer");
	string_or_null(json, "plugin", writer->plugin);
	string_or_null(json, "criu", criu_version_text(writer->criu_hooks));
	if (writer->criu_hooks)
		json_number(json, "criu_hooks", writer->criu_hooks);
	else
		json_null(json, "criu_hooks");
	string_or_null(json, "kernel", writer->kernel);
	string_or_null(json, "driver", writer->driver);
	json_end(json);
}

static void write_device(struct json *json, const struct topology_node *node)
{
	char gfx[GFX_TEXT_MAX], pci[PCI_TEXT_MAX];

	gfx_text(node, gfx);
	pci_text(node, pci);
	json_number(json, "gpu_id", topology_gpu_id(node));
	json_number(json, "node", node->id);
	string_or_null(json, "name", node->name);
	string_or_null(json, "gfx", gfx);
	json_number(json, "vendor_id", topology_get(node, TOPOLOGY_VENDOR_ID));
	json_number(json, "device_id", topology_get(node, TOPOLOGY_DEVICE_ID));
	string_or_null(json, "pci", pci);
	json_number(json, "render_minor", topology_get(node, TOPOLOGY_DRM_RENDER_MINOR));
	number_of(json, "xccs", node, TOPOLOGY_NUM_XCC);
	number_of(json, "sdma_partition", node, TOPOLOGY_SDMA_PARTITION);
	hex_of(json, "unique_id", node, TOPOLOGY_UNIQUE_ID);
	hex_of(json, "hive_id", node, TOPOLOGY_HIVE_ID);
	json_number(json, "vram_bytes", topology_get(node, TOPOLOGY_VRAM_SIZE));
	json_number(json, "firmware", topology_get(node, TOPOLOGY_FW_VERSION));
	json_number(json, "sdma_firmware", topology_get(node, TOPOLOGY_SDMA_FW_VERSION));
}

static void write_file_sizes(struct json *json, const struct image_file *file)
{
	json_number(json, "bytes", file->size);
	if (file->knows_disk)
		json_number(json, "disk_bytes", file->disk_bytes);
	else
		json_null(json, "disk_bytes");
}

static void write_contents(struct json *json, const struct image_file *pages, const struct gpu_sum *gpu)
{
	json_object(json, "contents");
	json_number(json, "buffers", gpu->nr_contents);
	json_number(json, "checksums", gpu->nr_checksums);
	json_number(json, "content_bytes", gpu->content_bytes);
	json_string(json, "file", pages ? pages->name : NULL);
	if (pages) {
		write_file_sizes(json, pages);
		if (pages->knows_disk)
			json_number(json, "zero_bytes", zero_bytes(pages));
		else
			json_null(json, "zero_bytes");
	}
	json_end(json);
}

static void write_buffers(struct json *json, const struct gpu_sum *gpu)
{
	json_array(json, "buffers");
	for (unsigned int kind = 0; kind < BO_NR_KINDS; kind++) {
		const struct bo_sum *sum = &gpu->bos[kind];

		if (!sum->nr)
			continue;
		json_object(json, NULL);
		json_string(json, "kind", bo_kind_names[kind]);
		json_number(json, "number", sum->nr);
		json_number(json, "bytes", sum->bytes);
		json_number(json, "largest_bytes", sum->largest->size);
		json_hex(json, "largest_address", sum->largest->addr);
		json_end(json);
	}
	json_end(json);
}

static void write_objects(struct json *json, const struct kfd_image *kfd, const struct summary *summary)
{
	json_number(json, "objects", kfd->state.nr_objects);
	if (!summary->knows_objects) {
		json_null(json, "queues");
		json_null(json, "events");
		json_null(json, "svm_ranges");
		return;
	}
	json_object(json, "queues");
	json_number(json, "compute", summary->compute_queues);
	json_number(json, "sdma", summary->sdma_queues);
	json_end(json);
	json_number(json, "events", summary->events);
	json_number(json, "svm_ranges", summary->svm_ranges);
}

static void write_gpu(struct json *json, const struct images *images, int id, const struct summary *summary,
		      const struct gpu_sum *gpu)
{
	json_object(json, NULL);
	write_device(json, gpu->node);
	if (summary->knows_objects) {
		json_object(json, "queues");
		json_number(json, "compute", gpu->compute_queues);
		json_number(json, "sdma", gpu->sdma_queues);
		json_end(json);
	} else {
		json_null(json, "queues");
	}
	write_buffers(json, gpu);
	write_contents(json, images_find(images, IMAGE_PAGES, id, topology_gpu_id(gpu->node)), gpu);
	json_end(json);
}

static int write_process(struct json *json, const struct images *images, const struct image_file *file)
{
	const struct kfd_image *kfd = file->kfd;
	struct summary summary;

	if (summary_init(&summary, kfd))
		return complain("out of memory");
	json_object(json, NULL);
	json_string(json, "file", file->name);
	json_number(json, "id", (uint64_t)file->is.id);
	json_number(json, "pid", kfd->state.pid);
	write_writer(json, &kfd->writer);
	json_bool(json, "checksum", kfd->has_crc32c);
	json_bool(json, "render_only", kfd->render_only);
	json_number(json, "state_bytes", kfd->state.priv_size);
	write_objects(json, kfd, &summary);
	if (kfd->has_vmas)
		json_number(json, "mappings", kfd->nr_vmas);
	else
		json_null(json, "mappings");
	if (kfd->nr_sharers)
		json_number(json, "sharers", kfd->nr_sharers);
	else
		json_null(json, "sharers");
	json_bool(json, "shares_old_rocm_memory", kfd->hsakmt.bytes != 0);
	json_array(json, "gpus");
	for (size_t i = 0; i < summary.nr_gpus; i++)
		write_gpu(json, images, file->is.id, &summary, &summary.gpus[i]);
	json_end(json);
	json_end(json);
	summary_done(&summary);
	return TOOL_GOOD;
}

/* Each once; they are sorted. */
static void write_names(struct json *json, const char *key, const struct sharing_ref *refs, size_t nr)
{
	json_array(json, key);
	for (size_t i = 0; i < nr; i++)
		if (!i || refs[i].file != refs[i - 1].file)
			json_string(json, NULL, refs[i].file->name);
	json_end(json);
}

static void write_shared(struct json *json, const struct shared_buffer *buffer)
{
	const struct kfd_criu_bo_bucket *bo = sharing_bo(buffer);
	const struct sharing_ref *importers = buffer->refs + buffer->nr[SHARING_OWNER];
	const struct sharing_ref *dmabufs = importers + buffer->nr[SHARING_IMPORTER] + buffer->nr[SHARING_HANDLE];

	json_object(json, NULL);
	json_number(json, "buffer", buffer->number);
	json_string(json, "owner", bo ? buffer->refs->file->name : NULL);
	if (bo) {
		json_string(json, "kind", bo_kind_names[bo_kind(bo)]);
		json_number(json, "gpu_id", bo->gpu_id);
		json_number(json, "bytes", bo->size);
		json_bool(json, "of_render_node", sharing_is_gem(buffer));
	}
	write_names(json, "importers", importers, buffer->nr[SHARING_IMPORTER]);
	json_number(json, "handles", buffer->nr[SHARING_HANDLE]);
	write_names(json, "dmabufs", dmabufs, buffer->nr[SHARING_DMABUF]);
	json_end(json);
}

static void write_objects_of(struct json *json, const struct render_objects *objects)
{
	json_array(json, "handles");
	for (size_t i = 0; i < objects->nr_handles; i++) {
		json_object(json, NULL);
		json_number(json, "handle", objects->handles[i].handle);
		json_number(json, "buffer", objects->handles[i].buffer);
		json_end(json);
	}
	json_end(json);
	json_number(json, "mappings", objects->nr_mappings);
	json_array(json, "syncobjs");
	for (size_t i = 0; i < objects->nr_syncobjs; i++) {
		json_object(json, NULL);
		json_number(json, "handle", objects->syncobjs[i].handle);
		json_number(json, "point", objects->syncobjs[i].point);
		json_bool(json, "is_signalled", objects->syncobjs[i].is_signalled);
		json_end(json);
	}
	json_end(json);
}

static void write_file(struct json *json, const struct image_file *file)
{
	static const char *const kinds[] = {
		[IMAGE_KFD] = "kfd",	   [IMAGE_RENDER] = "render",	    [IMAGE_PAGES] = "pages",
		[IMAGE_DMABUF] = "dmabuf", [IMAGE_DRM_PAGES] = "drm-pages",
	};

	json_object(json, NULL);
	json_string(json, "name", file->name);
	json_string(json, "kind", kinds[file->is.kind]);
	json_number(json, "id", (uint64_t)file->is.id);
	write_file_sizes(json, file);
	if (file->render)
		json_number(json, "gpu_id", file->render->gpu_id);
	if (file->render || file->kfd)
		json_bool(json, "another_file", file->render ? file->render->another_file : file->kfd->another_file);
	if (file->render)
		write_objects_of(json, &file->render->objects);
	if (file->dmabuf) {
		json_number(json, "buffer", file->dmabuf->buffer);
		string_or_null(json, "label", file->dmabuf->name);
	}
	json_string(json, "problem", file->problem);
	json_end(json);
}

int show_json(const char *path, const struct images *images, const struct sharing *sharing)
{
	struct json json = { .out = stdout };
	struct shared_buffer buffer;
	int status = TOOL_GOOD;
	size_t at = 0;

	json_object(&json, NULL);
	json_number(&json, "format", 1);
	json_string(&json, "path", path);
	json_array(&json, "processes");
	for (size_t i = 0; i < images->nr && status == TOOL_GOOD; i++)
		if (image_is_process(&images->files[i]))
			status = write_process(&json, images, &images->files[i]);
	json_end(&json);
	json_array(&json, "shared_buffers");
	while (sharing_next(sharing, &at, &buffer))
		write_shared(&json, &buffer);
	json_end(&json);
	json_array(&json, "files");
	for (size_t i = 0; i < images->nr; i++)
		write_file(&json, &images->files[i]);
	json_end(&json);
	json_end(&json);
	return status;
}
