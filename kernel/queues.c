// SPDX-License-Identifier: GPL-2.0-only
/* The records of compute queues, as far as drivers do not take back what they gave: control stacks, and several XCCs. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"

/* ---- control stacks, as the MQD in a queue's record tells ---- */

/* More than any GPU has; the number may be that of an image. */
#define MAX_STACK (1u << 20)

enum stack stack_of(const struct queue_record *record, const struct topology_node *gpu)
{
	uint64_t gfx = topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION);

	if (record->type != QUEUE_TYPE_COMPUTE || !record->cwsr_address || record->ctl_stack_size || gfx < 90000)
		return STACK_SAVED;
	if (gfx >= 100000)
		return STACK_ELSEWHERE;
	return record->mqd_stack_size && record->mqd_stack_size <= MAX_STACK &&
	       record->mqd_stack_offset == record->mqd_stack_size && record->mqd_wave_offset == record->mqd_stack_size ?
		       STACK_EMPTY : STACK_LOST;
}

int stacks_add(struct kfd_state *state, const struct topology *nodes, const struct driver_release *driver, bool at_restore)
{
	bool elsewhere_too = at_restore && driver_checks_queues(driver);
	uint64_t size_before = state->priv_size;
	int nr_lost = 0;

	for (uint32_t i = 0; i < state->nr_queues; i++) {
		struct queue_record *queue = &state->queues[i];
		int node = topology_find_gpu(nodes, queue->gpu_id);
		enum stack stack = node < 0 ? STACK_SAVED : stack_of(queue, nodes->nodes[node]);
		bool is_lost = at_restore && stack == STACK_LOST;
		/* Of one XCC; a size that is nonsense becomes none, also for the GPU. */
		bool is_sane = queue->mqd_stack_size <= MAX_STACK && queue->nr_mqds <= MAX_XCCS;
		uint32_t one = is_sane ? queue->mqd_stack_size : 0, size = one * queue->nr_mqds;

		if (stack != STACK_EMPTY && !is_lost && !(elsewhere_too && stack == STACK_ELSEWHERE))
			continue;
		if (records_insert(state, queue->at + QUEUE_RECORD_SIZE + queue->mqd_size, size))
			return -ENOMEM;
		queue->ctl_stack_size = size;
		memcpy(state->priv_data + queue->at + QUEUE_STACK_SIZE_AT, &size, sizeof(size));
		if (is_lost)
			records_empty_mqds(state, queue, one);
		nr_lost += is_lost;
	}
	if (state->priv_size > size_before)
		pr_info("the driver left out %" PRIu64 " bytes of control stacks, which are restored empty\n",
			state->priv_size - size_before);
	return nr_lost;
}

/* ---- queues of several XCCs: records as large as those of one, without losing any ---- */

bool fold_fits(const struct queue_record *record, uint64_t nr_xcc)
{
	uint64_t stacks = record->ctl_stack_size ? record->ctl_stack_size : nr_xcc * record->mqd_stack_size;
	uint64_t more = (nr_xcc - 1) * COMPUTE_MQD_SIZE, stack = stacks / nr_xcc;

	if (record->nr_mqds != nr_xcc || stacks % nr_xcc || more > stacks || record->mqd_stack_offset > stack)
		return false;
	return record->mqd_stack_offset >= (more < stack ? more : stack);
}

void fold_queues(struct kfd_state *state, const struct topology *machine)
{
	for (uint32_t i = 0; i < state->nr_queues; i++) {
		struct queue_record *queue = &state->queues[i];
		const struct topology_node *gpu = kfd_state_gpu(state, machine, queue->gpu_id);
		uint64_t nr_xcc = gpu ? topology_get(gpu, TOPOLOGY_NUM_XCC) : 1, at = queue->at + QUEUE_RECORD_SIZE;
		bool is_compute = queue->type == QUEUE_TYPE_COMPUTE;
		uint32_t one = is_compute ? COMPUTE_MQD_SIZE : SDMA_MQD_SIZE;

		if (nr_xcc < 2 || (is_compute ? !queue->ctl_stack_size || !fold_fits(queue, nr_xcc)
					      : queue->mqd_size != nr_xcc * SDMA_MQD_SIZE))
			continue;
		/* Of a compute queue all MQDs stay, and the first ones become part of its stack. */
		at += is_compute ? queue->mqd_size : SDMA_MQD_SIZE;
		queue->mqd_size = one;
		queue->nr_mqds = is_compute;
		memcpy(state->priv_data + queue->at + QUEUE_MQD_SIZE_AT, &one, sizeof(one));
		records_cut(state, at, (nr_xcc - 1) * one);
	}
}
