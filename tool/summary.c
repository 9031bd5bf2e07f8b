// SPDX-License-Identifier: GPL-2.0-only
/* Counts what an image has, and puts single values into words. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/summary.h"

const char *const bo_kind_names[BO_NR_KINDS] = {
	[BO_VRAM] = "VRAM",	    [BO_GTT] = "GTT",	[BO_USERPTR] = "userptr",
	[BO_DOORBELL] = "doorbell", [BO_MMIO] = "MMIO", [BO_OTHER] = "other",
};

static enum bo_kind bo_kind(const struct bo *bo)
{
	static const uint32_t flags[BO_OTHER] = {
		[BO_VRAM] = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,	[BO_GTT] = KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		[BO_USERPTR] = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, [BO_DOORBELL] = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
		[BO_MMIO] = KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
	};

	for (unsigned int i = 0; i < BO_OTHER; i++)
		if (bo->alloc_flags & flags[i])
			return i;
	return BO_OTHER;
}

static struct gpu_sum *find_gpu(const struct summary *summary, uint32_t gpu_id)
{
	for (size_t i = 0; i < summary->nr_gpus; i++)
		if (topology_gpu_id(summary->gpus[i].node) == gpu_id)
			return &summary->gpus[i];
	return NULL;
}

static void add_bo(struct gpu_sum *gpu, const struct kfd_state *state, size_t i)
{
	const struct bo *bo = &state->bos[i];
	struct bo_sum *sum = &gpu->bos[bo_kind(bo)];

	sum->nr++;
	sum->bytes += bo->size;
	if (!kfd_state_owns(state, i))
		return;
	gpu->nr_contents++;
	gpu->content_bytes += bo->size;
}

/* Queues of GPUs that the image does not have count for the process alone. */
static void add_objects(struct summary *summary, const struct kfd_image *kfd)
{
	struct kfd_state state = image_state(kfd);
	struct queue_record queue;
	struct records records;
	int r;

	/* Such a process has no objects, nor a state that would tell of them. */
	summary->knows_objects = kfd->render_only;
	if (kfd->render_only)
		return;
	r = records_begin(&state, &records);
	while (!r && (r = records_next_queue(&records, &queue)) > 0) {
		struct gpu_sum *gpu = find_gpu(summary, queue.gpu_id);
		bool compute = queue.type == QUEUE_TYPE_COMPUTE;

		summary->compute_queues += compute;
		summary->sdma_queues += !compute;
		if (gpu) {
			gpu->compute_queues += compute;
			gpu->sdma_queues += !compute;
		}
		r = 0;
	}
	summary->knows_objects = r == 0;
	summary->events = records.nr_events;
	summary->svm_ranges = records.nr_svm_ranges;
}

int summary_init(struct summary *summary, const struct kfd_image *kfd)
{
	*summary = (struct summary){ .gpus = calloc(kfd->nodes->nr_nodes + 1, sizeof(*summary->gpus)) };
	if (!summary->gpus)
		return -ENOMEM;
	for (unsigned int i = 0; i < kfd->nodes->nr_nodes; i++)
		if (topology_is_gpu(kfd->nodes->nodes[i]))
			summary->gpus[summary->nr_gpus++].node = kfd->nodes->nodes[i];
	for (size_t i = 0; i < kfd->state.nr_bos; i++) {
		struct gpu_sum *gpu = find_gpu(summary, kfd->state.bos[i].gpu_id);

		if (gpu)
			add_bo(gpu, &kfd->state, i);
		summary->shared_buffers += kfd->state.bos[i].share.buffer != 0;
	}
	add_objects(summary, kfd);
	return 0;
}

void summary_done(struct summary *summary)
{
	free(summary->gpus);
	summary->gpus = NULL;
}

const char *gfx_text(const struct topology_node *node, char text[GFX_TEXT_MAX])
{
	unsigned int gfx = (unsigned int)topology_get(node, TOPOLOGY_GFX_TARGET_VERSION);

	text[0] = '\0';
	if (topology_has(node, TOPOLOGY_GFX_TARGET_VERSION))
		snprintf(text, GFX_TEXT_MAX, "gfx%u%x%x", gfx / 10000, gfx / 100 % 100, gfx % 100);
	return text;
}

const char *pci_text(const struct topology_node *node, char text[PCI_TEXT_MAX])
{
	uint64_t domain = topology_get(node, TOPOLOGY_DOMAIN), location = topology_get(node, TOPOLOGY_LOCATION_ID);
	struct device_ref ref = { DEVICE_REF_PCI, domain << 32 | (location & 0xffff) };

	text[0] = '\0';
	if (topology_has(node, TOPOLOGY_LOCATION_ID))
		device_ref_text(&ref, text, PCI_TEXT_MAX);
	return text;
}

const char *criu_version_text(unsigned int hooks)
{
	static const struct {
		unsigned int hooks;
		const char *text;
	} versions[] = { { 10, "3.17 to 3.19" }, { 12, "4.0 or 4.1" }, { 13, "4.2" } };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].hooks == hooks)
			return versions[i].text;
	return hooks > 13 ? "later than 4.2" : NULL;
}

static size_t map_text(const struct settings *settings, char text[SETTING_TEXT_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < settings->n_device_map && len < SETTING_TEXT_MAX / 2; i++) {
		char saved[DEVICE_REF_TEXT_MAX], local[DEVICE_REF_TEXT_MAX];

		device_ref_text(&settings->device_map[i].saved, saved, sizeof(saved));
		device_ref_text(&settings->device_map[i].local, local, sizeof(local));
		len += (size_t)snprintf(text + len, SETTING_TEXT_MAX - len, "%s%s=%s", i ? "," : "", saved, local);
	}
	return len;
}

void setting_text(const struct settings *settings, enum setting id, char text[SETTING_TEXT_MAX])
{
	static const char *const sources[] = { "default", SETTINGS_MACHINE_CONF,
					       SETTINGS_IMAGE_CONF " beside the images", "this shell's environment" };
	size_t len;

	if (id < SETTING_N_FLAGS)
		len = (size_t)sprintf(text, "%d", settings->flag[id]);
	else if (id == SETTING_MAX_BUFFER_SIZE)
		len = (size_t)sprintf(text, "%" PRIu64, settings->max_buffer_size_bytes);
	else if (id == SETTING_PROGRESS)
		len = (size_t)snprintf(text, SETTING_TEXT_MAX / 2, "%.2000s", settings->progress);
	else
		len = map_text(settings, text);
	snprintf(text + len, SETTING_TEXT_MAX - len, ", from %s", sources[settings->from[id]]);
}
