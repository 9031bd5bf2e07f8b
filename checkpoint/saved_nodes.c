// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which nodes go into the images of a dumped process.
 *
 * A process of the KFD knows its GPUs by ids of its own. A process that has only render nodes knows no ids: its images
 * have those of a process that has all its GPUs, by which the restore finds the same ones for both, or this machine's.
 */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"

bool saved_nodes_have(const struct topology *nodes, const struct task_files *files, pid_t pid)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].pid == pid && topology_find_minor(nodes, files->files[i].minor) < 0)
			return false;
	return true;
}

int saved_nodes_find(const struct topology *nodes, const struct task_file *file)
{
	int node = topology_find_minor(nodes, file->minor);

	if (node >= 0)
		return node;
	return fail(-EOPNOTSUPP, "pid %d: renderD%u is not of a GPU that /dev/kfd shows", file->pid, file->minor);
}

int saved_nodes_find_devices(const struct topology *machine, const struct task_files *files, pid_t pid,
			     const struct kfd_state *lender, struct kfd_state *state)
{
	state->devices = calloc(machine->nr_nodes + 1, sizeof(*state->devices));
	for (unsigned int i = 0; state->devices && i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		uint32_t id = topology_gpu_id(node), known_as = id;

		if (!id || (lender ? kfd_state_user_id(lender, id, &known_as) : !task_files_has(files, pid, topology_minor(node))))
			continue;
		state->devices[state->nr_devices++] = (struct kfd_criu_device_bucket){
			.user_gpu_id = known_as,
			.actual_gpu_id = id,
		};
	}
	return state->devices ? 0 : -ENOMEM;
}
