// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who else uses the GPUs: the queues of all KFD processes, and what the driver says of VRAM.
 * Taken from a sysfs that the caller has opened, since a restored task may see none.
 */
#include <signal.h>

#include "kernel/machine.h"
#include "kernel/tasks.h"
#include "amdgpu_plugin_util.h"

#define PROCESSES "class/kfd/kfd/proc"

void usage_read_queues(int sysfs, int pid, const struct topology *machine, struct gpu_usage *usage)
{
	_cleanup_free_ int *queues = NULL;
	char path[96];
	size_t nr = 0;

	snprintf(path, sizeof(path), PROCESSES "/%d/queues", pid);
	if (list_numbers(sysfs, path, &queues, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		uint64_t gpu_id;
		int node;

		snprintf(path, sizeof(path), PROCESSES "/%d/queues/%d/gpuid", pid, queues[i]);
		node = read_number_at(sysfs, path, &gpu_id) ? -1 : topology_find_gpu(machine, (uint32_t)gpu_id);
		if (node >= 0)
			usage[node].has_queues = true;
	}
}

static int read_mem_info(int sysfs, const struct topology_node *node, const char *which, uint64_t *ret)
{
	char device[SYSFS_PCI_PATH_MAX], path[128];

	sysfs_pci_path(node, device);
	snprintf(path, sizeof(path), "%s/mem_info_vram_%s", device, which);
	return read_number_at(sysfs, path, ret);
}

void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage)
{
	uint64_t total, used;

	if (!topology_has(node, TOPOLOGY_LOCATION_ID) || topology_get(node, TOPOLOGY_CPU_CORES_COUNT) ||
	    read_mem_info(sysfs, node, "total", &total) || read_mem_info(sysfs, node, "used", &used))
		return;
	usage->knows_vram = true;
	usage->vram_free = total > used ? total - used : 0;
}

void usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;

	memset(usage, 0, machine->nr_nodes * sizeof(*usage));
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		if (topology_is_gpu(machine->nodes[i]))
			usage_read_vram(sysfs, machine->nodes[i], &usage[i]);
	if (list_numbers(sysfs, PROCESSES, &pids, &nr))
		return;
	for (size_t i = 0; i < nr; i++)
		usage_read_queues(sysfs, pids[i], machine, usage);
}

size_t usage_count_ended(int sysfs)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, ended = 0;

	if (task_in_initial_pid_ns() <= 0 || list_numbers(sysfs, PROCESSES, &pids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		ended += kill(pids[i], 0) < 0 && errno == ESRCH;
	return ended;
}
