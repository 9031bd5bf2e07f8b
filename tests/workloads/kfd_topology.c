// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads /sys/class/kfd/kfd/topology.
 *
 * A parser of its own, on purpose: the workloads must not inherit a mistake of the
 * plugin's. Unknown names and any order of lines are accepted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd.h"
#include "report.h"

#define TOPOLOGY	"/sys/class/kfd/kfd/topology"
#define MAX_NODES	512u
#define HEAP_FB_PUBLIC	1u
#define HEAP_FB_PRIVATE 2u

/* The whole file as a string. -errno, nothing reported. */
static int file_read(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t n;
	int err;

	if (!file)
		return -errno;
	errno = 0;
	n = fread(text, 1, size - 1, file);
	err = ferror(file) ? -errno : feof(file) ? 0 : -EFBIG;
	fclose(file);
	text[n] = '\0';
	return err;
}

/* The number in the line "@name NUMBER"; 0 when there is no such line. */
static uint64_t value_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

static int banks_read(unsigned int node, uint64_t nr_banks, struct kfd_gpu *gpu)
{
	for (unsigned int bank = 0; bank < nr_banks; bank++) {
		char path[128], text[4096];
		uint64_t heap, size;
		int err;

		snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/mem_banks/%u/properties", node, bank);
		err = file_read(path, text, sizeof(text));
		if (err)
			return report(-err, "%s: %s", path, strerror(-err));
		heap = value_of(text, "heap_type");
		size = value_of(text, "size_in_bytes");
		if (heap == HEAP_FB_PUBLIC)
			gpu->public_vram_bytes += size;
		if (heap == HEAP_FB_PUBLIC || heap == HEAP_FB_PRIVATE)
			gpu->vram_bytes += size;
	}
	return 0;
}

/* State of all waves, and what the debugger is given of each. */
static uint64_t save_area_bytes(const char *text, const struct kfd_gpu *gpu)
{
	uint64_t cus = value_of(text, "simd_count") / value_of(text, "simd_per_cu") / gpu->num_xcc, waves = cus * 32;
	uint64_t engines = value_of(text, "array_count") / value_of(text, "simd_arrays_per_engine");

	if (gpu->gfx_version < 100100)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	return (gpu->cwsr_bytes + ((waves * 32 + 63) & ~63ull)) * gpu->num_xcc;
}

/* 1: a GPU, 0: a CPU or hidden, -ENOENT: no such node (not reported). */
static int node_read(unsigned int node, struct kfd_gpu *gpu)
{
	char path[128], text[8192];
	int err;

	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/gpu_id", node);
	err = file_read(path, text, sizeof(text));
	if (err == -ENOENT)
		return err;
	if (err == -EPERM)
		return 0;
	if (err)
		return report(-err, "%s: %s", path, strerror(-err));
	gpu->gpu_id = (uint32_t)strtoul(text, NULL, 10);
	if (!gpu->gpu_id)
		return 0;

	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/properties", node);
	err = file_read(path, text, sizeof(text));
	if (err == -EPERM)
		return 0;
	if (err)
		return report(-err, "%s: %s", path, strerror(-err));
	gpu->render_fd = -1;
	gpu->render_minor = (uint32_t)value_of(text, "drm_render_minor");
	gpu->gfx_version = (uint32_t)value_of(text, "gfx_target_version");
	gpu->hive_id = value_of(text, "hive_id");
	gpu->pci_device = value_of(text, "domain") << 32 | value_of(text, "location_id") >> 3;
	gpu->num_xcc = value_of(text, "num_xcc") ? (uint32_t)value_of(text, "num_xcc") : 1;
	gpu->sdma_engines = (uint32_t)value_of(text, "num_sdma_engines");
	gpu->xgmi_engines = (uint32_t)value_of(text, "num_sdma_xgmi_engines");
	gpu->cwsr_bytes = (uint32_t)value_of(text, "cwsr_size");
	gpu->ctl_stack_bytes = (uint32_t)value_of(text, "ctl_stack_size");
	gpu->save_area_bytes = save_area_bytes(text, gpu);
	err = banks_read(node, value_of(text, "mem_banks_count"), gpu);
	return err ? err : 1;
}

int kfd_topology_read(struct kfd_gpu *gpus, unsigned int max_gpus)
{
	unsigned int nr = 0;

	for (unsigned int node = 0; node < MAX_NODES && nr < max_gpus; node++) {
		int ret;

		memset(&gpus[nr], 0, sizeof(gpus[nr]));
		ret = node_read(node, &gpus[nr]);
		if (ret == -ENOENT)
			break;
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		gpus[nr].index = nr;
		nr++;
	}
	if (!nr)
		return report(ENODEV, TOPOLOGY ": no GPU that this process can use; is the driver loaded?");
	return (int)nr;
}
