// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu-image show: processes, their GPUs and buffers, what they share, and the other files. */
#include "amdgpu_plugin_util.h"
#include "tool/commands.h"
#include "tool/summary.h"

/* ---- a process ---- */

static void print_writer(const struct image_writer *writer)
{
	print_object("writer");
	print_string("plugin", "  written by   plugin ", writer->plugin);
	print_string("criu", ", criu ", criu_version_text(writer->criu_hooks));
	print_number("criu_hooks", writer->criu_hooks ? ", criu's hooks: " : NULL, writer->criu_hooks);
	print_string("kernel", ", Linux ", writer->kernel);
	print_string("driver", ", driver: ", writer->driver);
	print_text(writer->plugin[0] ? "\n" : "  written by   not said\n");
	print_end();
}

/* 0 and no text where the image does not have the property. */
static void print_prop(const char *key, const char *before, const struct topology_node *node, enum topology_prop prop)
{
	print_number(key, topology_has(node, prop) ? before : NULL, topology_get(node, prop));
}

static void print_device(const struct topology_node *node)
{
	char gfx[GFX_TEXT_MAX], pci[PCI_TEXT_MAX];

	print_id("gpu_id", "  gpu ", topology_gpu_id(node));
	print_string("name", "   ", node->name);
	print_string("gfx", " ", gfx_text(node, gfx));
	print_id("vendor_id", ", vendor ", topology_get(node, TOPOLOGY_VENDOR_ID));
	print_id("device_id", ", device ", topology_get(node, TOPOLOGY_DEVICE_ID));
	print_bytes("vram_bytes", ", VRAM ", topology_get(node, TOPOLOGY_VRAM_SIZE));
	print_number("render_minor", "; at dump renderD", topology_get(node, TOPOLOGY_DRM_RENDER_MINOR));
	print_string("pci", ", ", pci_text(node, pci));
	print_prop("firmware", "\n    firmware   ", node, TOPOLOGY_FW_VERSION);
	print_prop("sdma_firmware", ", SDMA ", node, TOPOLOGY_SDMA_FW_VERSION);
	print_prop("xccs", "\n    partition  XCCs: ", node, TOPOLOGY_NUM_XCC);
	print_prop("sdma_partition", ", number ", node, TOPOLOGY_SDMA_PARTITION);
	print_address("unique_id", NULL, topology_get(node, TOPOLOGY_UNIQUE_ID));
}

static void print_queues(const char *before, unsigned int compute, unsigned int sdma)
{
	print_object("queues");
	print_number("compute", before, compute);
	print_number("sdma", ", SDMA ", sdma);
	print_end();
}

static void print_buffers(const struct gpu_sum *gpu)
{
	print_array("buffers");
	for (unsigned int kind = 0; kind < BO_NR_KINDS; kind++) {
		const struct bo_sum *sum = &gpu->bos[kind];

		if (!sum->nr)
			continue;
		print_object(NULL);
		print_string("kind", "    ", bo_kind_names[kind]);
		print_number("number", ": ", sum->nr);
		print_bytes("bytes", ", ", sum->bytes);
		print_text("\n");
		print_end();
	}
	print_end();
}

static void print_gpu(const struct images *images, int id, const struct gpu_sum *gpu, bool knows_objects)
{
	const struct image_file *pages = images_find(images, IMAGE_PAGES, id, topology_gpu_id(gpu->node));

	print_object(NULL);
	print_device(gpu->node);
	if (knows_objects)
		print_queues("\n    queues     compute ", gpu->compute_queues, gpu->sdma_queues);
	print_object("contents");
	print_bytes("content_bytes", "\n    contents   ", gpu->content_bytes);
	print_number("buffers", NULL, gpu->nr_contents);
	print_string("file", " in ", pages ? pages->name : NULL);
	print_end();
	if (!pages && gpu->nr_contents)
		print_text(", and their file is missing");
	print_text("\n");
	print_buffers(gpu);
	print_end();
}

static void print_objects(const struct kfd_image *kfd, const struct summary *summary)
{
	print_number("objects", "  objects      ", kfd->state.nr_objects);
	if (summary->knows_objects) {
		print_queues("; queues: compute ", summary->compute_queues, summary->sdma_queues);
		print_number("events", ", events: ", summary->events);
		print_number("svm_ranges", ", SVM ranges: ", summary->svm_ranges);
	} else {
		print_text(", of kinds that are not known");
	}
	print_number("mappings", kfd->has_vmas ? "\n  mappings     " : NULL, kfd->nr_vmas);
	print_text("\n");
}

static int print_process(const struct images *images, const struct image_file *file)
{
	const struct kfd_image *kfd = file->kfd;
	struct summary summary;

	if (summary_init(&summary, kfd))
		return complain("out of memory");
	print_object(NULL);
	print_number("pid", "\nprocess ", kfd->state.pid);
	print_text("%s", kfd->render_only ? ", without /dev/kfd" : "");
	print_string("file", "   ", file->name);
	print_text("\n");
	print_writer(&kfd->writer);
	print_bool("checksum", kfd->has_crc32c);
	print_bool("render_only", kfd->render_only);
	print_number("state_bytes", NULL, kfd->state.priv_size);
	print_objects(kfd, &summary);
	print_number("sharers", kfd->nr_sharers ? "  sharing      processes that take part: " : NULL, kfd->nr_sharers);
	print_number("shared_buffers", kfd->nr_sharers ? ", buffers of this one: " : NULL, summary.shared_buffers);
	print_text("%s", kfd->nr_sharers ? "\n" : "");
	print_bool("shares_old_rocm_memory", kfd->hsakmt.bytes != 0);
	if (kfd->hsakmt.bytes)
		print_text("  sharing      with all processes on ROCm before 6.0 (/dev/shm/hsakmt_shared_mem)\n");
	print_array("gpus");
	for (size_t i = 0; i < summary.nr_gpus; i++)
		print_gpu(images, file->is.id, &summary.gpus[i], summary.knows_objects);
	print_end();
	print_end();
	summary_done(&summary);
	return TOOL_GOOD;
}

/* ---- all ---- */

static void print_file(const struct image_file *file)
{
	print_object(NULL);
	print_string("name", "  ", file->name);
	print_bytes("bytes", ", ", file->size);
	print_string("problem", ": ", file->problem);
	if (file->is.kind == IMAGE_DRM_PAGES)
		print_text(": of CRIU's development branch; this plugin does not restore it");
	print_text("\n");
	print_end();
}

static int show(const struct images *images)
{
	int status = TOOL_GOOD;

	print_object(NULL);
	print_string("path", "", images->source.path);
	print_number("files_number", ": files: ", images->nr);
	print_text("\n");
	print_array("processes");
	for (size_t i = 0; i < images->nr && status == TOOL_GOOD; i++)
		if (image_is_process(&images->files[i]))
			status = print_process(images, &images->files[i]);
	print_end();
	print_text("\nfiles:\n");
	print_array("files");
	for (size_t i = 0; i < images->nr; i++)
		if (!image_is_process(&images->files[i]))
			print_file(&images->files[i]);
	print_end();
	print_end();
	return status;
}

int command_show(const struct arguments *arguments)
{
	struct images images;
	int status;

	if (images_open(arguments->path, &images))
		return TOOL_FAIL;
	status = show(&images);
	if (status == TOOL_GOOD)
		status = images_status(&images);
	images_done(&images);
	return status;
}
