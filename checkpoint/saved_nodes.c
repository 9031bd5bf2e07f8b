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

/* @gpu_id is how the process knows it, 0 for a CPU. */
static int add_node(struct topology *nodes, const struct topology_node *from, uint32_t gpu_id,
		    const struct kfd_state *state)
{
	struct topology_node *node;
	int err = topology_add_node(nodes, from->id, &node);

	if (err)
		return err;
	node->present = from->present;
	memcpy(node->value, from->value, sizeof(node->value));
	memcpy(node->name, from->name, sizeof(node->name));
	if (!gpu_id || !records_have_sdma_queue(state, gpu_id))
		topology_node_unset(node, TOPOLOGY_SDMA_PARTITION);
	for (unsigned int i = 0; !err && i < from->nr_links; i++)
		err = topology_node_add_link(node, &from->links[i]);
	return err ? err : topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id);
}

static int user_gpu_id(const struct kfd_state *state, uint32_t actual_gpu_id, uint32_t *ret)
{
	for (size_t i = 0; i < state->nr_devices; i++)
		if (state->devices[i].actual_gpu_id == actual_gpu_id) {
			*ret = state->devices[i].user_gpu_id;
			return 0;
		}
	return -ENODEV;
}

int saved_nodes(const struct topology *machine, pid_t pid, const struct kfd_state *state, struct topology **ret)
{
	_cleanup_topology_ struct topology *nodes = topology_new();
	unsigned int gpus = 0;
	int err;

	if (!nodes)
		return -ENOMEM;
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *from = machine->nodes[i];
		uint32_t gpu_id = 0;

		if (topology_is_gpu(from) && user_gpu_id(state, topology_gpu_id(from), &gpu_id))
			continue;
		gpus += gpu_id != 0;
		err = add_node(nodes, from, gpu_id, state);
		if (err)
			return err;
	}
	if (gpus != state->nr_devices)
		return fail(-ENODEV, "pid %d has %u GPUs, the machine's topology shows %u of them", pid,
			    state->nr_devices, gpus);
	err = topology_finish(nodes);
	if (err)
		return err;
	*ret = steal_ptr(nodes);
	return 0;
}

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

		if (!id || (lender ? user_gpu_id(lender, id, &known_as) : !task_files_has(files, pid, topology_minor(node))))
			continue;
		state->devices[state->nr_devices++] = (struct kfd_criu_device_bucket){
			.user_gpu_id = known_as,
			.actual_gpu_id = id,
		};
	}
	return state->devices ? 0 : -ENOMEM;
}
