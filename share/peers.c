// SPDX-License-Identifier: GPL-2.0-only
/*
 * References to a buffer's dma-buf by the mappings of a KFD BO on further GPUs.
 *
 * The KFD maps the BO itself where the other GPU can use the addresses of its memory: partitions of one device, VRAM
 * within an XGMI hive, and system memory unless an IOMMU translates for each of the two GPUs. Else it imports the BO's
 * dma-buf for the other GPU, which holds one reference (kfd_mem_attach() of Linux 6.12 and 7.2). An import of another
 * GPU's memory is never mapped this way.
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "amdgpu_plugin_drm.h"
#include "share/peers.h"

static bool same_hive(const struct topology_node *a, const struct topology_node *b)
{
	return topology_get(a, TOPOLOGY_HIVE_ID) &&
	       topology_get(a, TOPOLOGY_HIVE_ID) == topology_get(b, TOPOLOGY_HIVE_ID);
}

/* Each group is read once: there may be thousands of buffers. */
static bool is_common(struct survey *survey, int node, int other)
{
	const struct topology *machine = survey->request->machine;
	_cleanup_close_ int sysfs = survey->has_groups ? -1 : open("/sys", O_PATH | O_CLOEXEC);

	for (unsigned int i = 0; !survey->has_groups && i < machine->nr_nodes; i++)
		iommu_read_group(sysfs, machine->nodes[i], &survey->groups[i]);
	survey->has_groups = true;
	return iommu_is_common(&survey->groups[node], &survey->groups[other]);
}

/* What the memory is, whatever it was allocated as: "VRAM" of an APU can be system memory. */
static bool is_vram(struct survey *survey, const struct buffer *buffer)
{
	int fd = survey_scratch(survey, buffer->minor);
	struct gem_info info = { 0 };
	uint32_t handle;

	if (fd < 0 || gem_import(fd, buffer->dmabuf_fd, &handle))
		return false;
	gem_ask(fd, handle, &info);
	gem_close(fd, handle);
	return info.domains & AMDGPU_GEM_DOMAIN_VRAM;
}

int64_t peers_references(struct survey *survey, const struct buffer *buffer, const struct holder *holder, int *vram)
{
	const struct share_process *process = holder_process(survey, holder);
	const struct topology *machine = survey->request->machine;
	int home = topology_find_minor(machine, holder->minor);
	struct bo_record record;
	int64_t ret = 0;

	if (home < 0 || records_bo(process->state, holder->bo, &record))
		return 0;
	for (uint32_t i = 0; i < records_nr_mapped(&record); i++) {
		int gpu = topology_find_gpu(process->nodes, record.mapped_gpus[i]);
		int peer = gpu < 0 ? -1 : topology_find_minor(machine, minor_of(process->nodes->nodes[gpu]));

		if (peer < 0 || topology_same_device(machine->nodes[home], machine->nodes[peer]))
			continue;
		if (*vram < 0)
			*vram = is_vram(survey, buffer);
		ret += !(*vram ? same_hive(machine->nodes[home], machine->nodes[peer]) : is_common(survey, home, peer));
	}
	return ret;
}
