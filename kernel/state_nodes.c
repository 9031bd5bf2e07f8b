// SPDX-License-Identifier: GPL-2.0-only
/* The nodes of a process: the machine's CPUs, and its GPUs by the ids by which it knows them. */
#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"

int kfd_state_user_id(const struct kfd_state *state, uint32_t actual_gpu_id, uint32_t *ret)
{
	for (size_t i = 0; i < state->nr_devices; i++)
		if (state->devices[i].actual_gpu_id == actual_gpu_id) {
			*ret = state->devices[i].user_gpu_id;
			return 0;
		}
	return -ENODEV;
}

int kfd_state_nodes(const struct topology *machine, pid_t pid, const struct kfd_state *state, struct topology **ret)
{
	_cleanup_topology_ struct topology *nodes = topology_new();
	unsigned int gpus = 0;
	int err;

	if (!nodes)
		return -ENOMEM;
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *from = machine->nodes[i];
		struct topology_node *node;
		uint32_t gpu_id = 0; /* how the process knows it; 0: a CPU */

		if (topology_is_gpu(from) && kfd_state_user_id(state, topology_gpu_id(from), &gpu_id))
			continue;
		gpus += gpu_id != 0;
		err = topology_add_node(nodes, from->id, &node);
		if (err)
			return err;
		node->present = from->present;
		memcpy(node->value, from->value, sizeof(node->value));
		memcpy(node->name, from->name, sizeof(node->name));
		if (!gpu_id || !records_have_sdma_queue(state, gpu_id))
			topology_node_unset(node, TOPOLOGY_SDMA_PARTITION);
		for (unsigned int k = 0; !err && k < from->nr_links; k++)
			err = topology_node_add_link(node, &from->links[k]);
		if (!err)
			err = topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id);
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

int kfd_state_minors(pid_t pid, const struct kfd_state *state, const struct topology *nodes, uint32_t **ret)
{
	_cleanup_free_ uint32_t *minors = calloc(state->nr_devices + 1, sizeof(*minors));

	for (size_t i = 0; minors && i < state->nr_devices; i++) {
		int node = topology_find_gpu(nodes, state->devices[i].user_gpu_id);

		if (node < 0)
			return fail(node, "pid %d: gpu %#x is not in the machine's topology", pid, state->devices[i].user_gpu_id);
		minors[i] = topology_minor(nodes->nodes[node]);
	}
	*ret = steal_ptr(minors);
	return *ret ? 0 : -ENOMEM;
}
