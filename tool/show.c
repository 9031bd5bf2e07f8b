// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu-image show, for people. show_json.c has the same for programs. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "tool/show.h"

static void show_writer(const struct image_writer *writer)
{
	const char *criu = criu_version_text(writer->criu_hooks);
	char system[IMAGE_WRITER_MAX + 8];

	if (!writer->plugin[0]) {
		puts("  written by   not said");
		return;
	}
	printf("  written by   plugin %s", safe(writer->plugin));
	if (writer->criu_hooks)
		printf(", criu %s (%u hooks)", criu ? criu : "unknown", writer->criu_hooks);
	snprintf(system, sizeof(system), "Linux %s", writer->kernel);
	printf(", %s", safe(system));
	if (writer->driver[0] && strcmp(writer->driver, system))
		printf(", %s", safe(writer->driver));
	putchar('\n');
}

static void show_device(const struct topology_node *node)
{
	char gfx[GFX_TEXT_MAX], pci[PCI_TEXT_MAX];

	gfx_text(node, gfx);
	pci_text(node, pci);
	printf("  %sgpu %#x%s   %s%s%s%sdevice %04x:%04x, %s VRAM, renderD%u at dump%s%s\n", colour(BOLD),
	       topology_gpu_id(node), colour(PLAIN), safe(node->name), node->name[0] ? " " : "", gfx,
	       gfx[0] ? ", " : "", (unsigned int)topology_get(node, TOPOLOGY_VENDOR_ID),
	       (unsigned int)topology_get(node, TOPOLOGY_DEVICE_ID), size_text(topology_get(node, TOPOLOGY_VRAM_SIZE)),
	       (unsigned int)topology_get(node, TOPOLOGY_DRM_RENDER_MINOR), pci[0] ? ", " : "", pci);
	printf("    firmware   %" PRIu64 ", SDMA %" PRIu64 "\n", topology_get(node, TOPOLOGY_FW_VERSION),
	       topology_get(node, TOPOLOGY_SDMA_FW_VERSION));
	if (topology_get(node, TOPOLOGY_NUM_XCC) > 1 || topology_get(node, TOPOLOGY_SDMA_PARTITION))
		printf("    partition  %" PRIu64 " XCCs, number %" PRIu64 "\n", topology_get(node, TOPOLOGY_NUM_XCC),
		       topology_get(node, TOPOLOGY_SDMA_PARTITION));
}

static void show_contents(const struct images *images, int id, const struct gpu_sum *gpu)
{
	const struct image_file *pages = images_find(images, IMAGE_PAGES, id, topology_gpu_id(gpu->node));
	uint64_t saved = pages ? zero_bytes(pages) : 0;

	printf("    contents   %s", size_text(gpu->content_bytes));
	if (!pages) {
		printf("%s\n", gpu->nr_contents ? ", and their file is missing" : "");
		return;
	}
	if (pages->knows_disk)
		printf(", %s on disk", size_text(pages->disk_bytes));
	if (saved)
		printf(", %s saved by zeros", size_text(saved));
	printf(" (%s)\n", pages->name);
}

static void show_gpu(const struct images *images, int id, const struct gpu_sum *gpu, bool knows_objects)
{
	show_device(gpu->node);
	if (knows_objects)
		printf("    queues     %u compute, %u SDMA\n", gpu->compute_queues, gpu->sdma_queues);
	show_contents(images, id, gpu);
	for (unsigned int kind = 0; kind < BO_NR_KINDS; kind++) {
		const struct bo_sum *sum = &gpu->bos[kind];

		if (sum->nr)
			printf("    %-8s   %6zu   %10s   largest %10s at %#" PRIx64 "\n", bo_kind_names[kind], sum->nr,
			       size_text(sum->bytes), size_text(sum->largest->size), sum->largest->addr);
	}
}

static void show_process(const struct images *images, const struct image_file *file, const struct summary *summary)
{
	const struct kfd_image *kfd = file->kfd;
	size_t nr_contents = 0, nr_checksums = 0;

	for (size_t i = 0; i < summary->nr_gpus; i++) {
		nr_contents += summary->gpus[i].nr_contents;
		nr_checksums += summary->gpus[i].nr_checksums;
	}
	printf("\n%sprocess %u%s%s   %s\n", colour(BOLD), kfd->state.pid, colour(PLAIN),
	       kfd->render_only ? ", without /dev/kfd" : "", file->name);
	show_writer(&kfd->writer);
	if (summary->knows_objects)
		printf("  objects      queues: %u compute, %u SDMA; events: %u; SVM ranges: %u\n",
		       summary->compute_queues, summary->sdma_queues, summary->events, summary->svm_ranges);
	else
		printf("  objects      %u, of kinds that are not known\n", kfd->state.nr_objects);
	if (kfd->has_vmas)
		printf("  mappings     %zu of device files\n", kfd->nr_vmas);
	printf("  checksums    %s, %zu of %zu buffers with contents\n",
	       kfd->has_crc32c ? "of the image" : "none of the image", nr_checksums, nr_contents);
	if (kfd->nr_sharers)
		printf("  sharing      %zu buffers of its own, %zu of others; processes that take part: %u\n",
		       summary->nr_lent, summary->nr_borrowed, kfd->nr_sharers);
	if (kfd->hsakmt.bytes)
		puts("  sharing      with all processes on ROCm before 6.0 (/dev/shm/hsakmt_shared_mem)");
	for (size_t i = 0; i < summary->nr_gpus; i++)
		show_gpu(images, file->is.id, &summary->gpus[i], summary->knows_objects);
}

static void show_processes(const char *what, const struct sharing_ref *refs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!i || refs[i].file != refs[i - 1].file)
			printf("%s %u", i ? "," : what, refs[i].file->kfd->state.pid);
}

static void show_shared(const struct shared_buffer *buffer)
{
	const struct kfd_criu_bo_bucket *bo = sharing_bo(buffer);

	printf("  buffer %-6u", buffer->number);
	if (bo)
		printf(" %s, %s on gpu %#x,", bo_kind_names[bo_kind(bo)], size_text(bo->size), bo->gpu_id);
	show_processes(sharing_is_gem(buffer) ? " of a render node of" : " of", buffer->refs,
		       buffer->nr[SHARING_OWNER]);
	if (!bo)
		printf(" %sof no process of the images%s", colour(RED), colour(PLAIN));
	show_processes("; imported by", buffer->refs + buffer->nr[SHARING_OWNER], buffer->nr[SHARING_IMPORTER]);
	printf("; GEM handles: %zu, dma-bufs: %zu", buffer->nr[SHARING_HANDLE], buffer->nr[SHARING_DMABUF]);
	putchar('\n');
}

static void show_sharing(const struct sharing *sharing)
{
	struct shared_buffer buffer;
	size_t at = 0;

	if (sharing->nr)
		puts("\nshared buffers, by process:");
	while (sharing_next(sharing, &at, &buffer))
		show_shared(&buffer);
}

static void show_render(const struct image_file *file)
{
	const struct render_objects *objects = &file->render->objects;

	printf("  %s: render node of gpu %#x%s", file->name, file->render->gpu_id,
	       file->render->another_file ? ", one more of the process" : "");
	if (objects->nr_handles || objects->nr_syncobjs)
		printf("; GEM handles: %zu, mappings: %zu, syncobjs: %zu", objects->nr_handles, objects->nr_mappings,
		       objects->nr_syncobjs);
	putchar('\n');
}

static void show_other(const struct image_file *file)
{
	if (file->err)
		printf("  %s%s: %s%s\n", colour(RED), file->name, safe(file->problem), colour(PLAIN));
	else if (file->is.kind == IMAGE_RENDER)
		show_render(file);
	else if (file->is.kind == IMAGE_DMABUF)
		printf("  %s: dma-buf of buffer %u%s%s\n", file->name, file->dmabuf->buffer,
		       file->dmabuf->name[0] ? ", named " : "", safe(file->dmabuf->name));
	else if (file->is.kind == IMAGE_KFD)
		printf("  %s: one more /dev/kfd of process %u\n", file->name, file->kfd->state.pid);
	else if (file->is.kind != IMAGE_PAGES)
		printf("  %s: of CRIU's development branch; this plugin does not restore it\n", file->name);
}

uint64_t zero_bytes(const struct image_file *pages)
{
	return pages->knows_disk && pages->size > pages->disk_bytes ? pages->size - pages->disk_bytes : 0;
}

static void show_totals(const char *path, const struct images *images)
{
	uint64_t bytes = 0, disk = 0, zeros = 0;
	size_t processes = 0;

	for (size_t i = 0; i < images->nr; i++) {
		const struct image_file *file = &images->files[i];

		bytes += file->size;
		disk += file->disk_bytes;
		zeros += file->is.kind == IMAGE_PAGES ? zero_bytes(file) : 0;
		processes += image_is_process(file);
	}
	printf("%s%s%s: %zu process%s, %zu files, %s", colour(BOLD), safe(path), colour(PLAIN), processes,
	       processes == 1 ? "" : "es", images->nr, size_text(bytes));
	if (images->dir >= 0)
		printf(", %s on disk, %s saved by zeros", size_text(disk), size_text(zeros));
	putchar('\n');
}

static int show(const char *path, const struct images *images, const struct sharing *sharing)
{
	size_t nr_other = 0;

	show_totals(path, images);
	for (size_t i = 0; i < images->nr; i++) {
		const struct image_file *file = &images->files[i];
		struct summary summary;

		if (!image_is_process(file))
			continue;
		if (summary_init(&summary, file->kfd))
			return complain("out of memory");
		show_process(images, file, &summary);
		summary_done(&summary);
	}
	show_sharing(sharing);
	for (size_t i = 0; i < images->nr; i++) {
		if (image_is_process(&images->files[i]))
			continue;
		if (!nr_other++)
			puts("\nother files:");
		show_other(&images->files[i]);
	}
	return TOOL_GOOD;
}

int command_show(const struct arguments *arguments)
{
	struct sharing sharing;
	struct images images;
	int status;

	if (images_open(arguments->path, &images))
		return TOOL_FAIL;
	if (sharing_init(&sharing, &images))
		status = complain("out of memory");
	else if (arguments->json)
		status = show_json(arguments->path, &images, &sharing);
	else
		status = show(arguments->path, &images, &sharing);
	if (status == TOOL_GOOD)
		status = images_status(&images);
	sharing_done(&sharing);
	images_done(&images);
	return status;
}
