// SPDX-License-Identifier: GPL-2.0-only
/* Control stacks of queues, and the state of their waves, as the MQD in a queue's record tells. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "kernel/stacks.h"

/* More than any GPU has; the number may be that of an image. */
#define MAX_STACK (1u << 20)

enum stack stack_of(const struct queue_record *record, const struct topology_node *gpu)
{
	uint64_t gfx = topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION);

	if (record->type != QUEUE_TYPE_COMPUTE || !record->cwsr_address || record->ctl_stack_size || gfx < 90000 ||
	    gfx >= 100000)
		return STACK_SAVED;
	return record->mqd_stack_size && record->mqd_stack_size <= MAX_STACK &&
	       record->mqd_stack_offset == record->mqd_stack_size && record->mqd_wave_offset == record->mqd_stack_size ?
		       STACK_EMPTY : STACK_LOST;
}

/* How many bytes of stack the queue gets. */
static uint32_t missing(const struct queue_record *record, const struct topology *nodes, unsigned int *lost)
{
	int node = topology_find_gpu(nodes, record->gpu_id);
	enum stack stack = node < 0 ? STACK_SAVED : stack_of(record, nodes->nodes[node]);

	*lost += stack == STACK_LOST;
	return stack == STACK_SAVED || record->mqd_stack_size > MAX_STACK ? 0 : record->mqd_stack_size;
}

/* Bytes of all stacks that are missing, or -EPROTO. */
static int64_t sum(const struct kfd_state *state, const struct topology *nodes, unsigned int *lost)
{
	struct queue_record record;
	struct records records;
	int64_t ret = 0;
	int r = records_begin(state, &records);

	if (r)
		return r;
	while ((r = records_next_queue(&records, &record)) > 0)
		ret += missing(&record, nodes, lost);
	return r ? r : ret;
}

/* Copies what is before the stack of each queue that lacks one; the stacks are zero. */
static void copy(const struct kfd_state *state, const struct topology *nodes, uint8_t *to)
{
	struct queue_record record;
	struct records records;
	uint64_t done = 0;
	unsigned int lost = 0;

	records_begin(state, &records);
	while (records_next_queue(&records, &record) > 0) {
		uint32_t size = missing(&record, nodes, &lost);
		uint64_t end = record.at + QUEUE_RECORD_SIZE + record.mqd_size;

		if (!size)
			continue;
		memcpy(to, state->priv_data + done, end - done);
		memcpy(to + (record.at - done) + QUEUE_STACK_SIZE_AT, &size, sizeof(size));
		to += end - done + size;
		done = end;
	}
	memcpy(to, state->priv_data + done, state->priv_size - done);
}

int stacks_add(struct kfd_state *state, const struct topology *nodes, unsigned int *ret_lost)
{
	int64_t more;
	uint8_t *grown;

	*ret_lost = 0;
	more = sum(state, nodes, ret_lost);
	if (more <= 0)
		return 0;
	grown = calloc(1, state->priv_size + (uint64_t)more);
	if (!grown)
		return -ENOMEM;
	pr_info("the driver left out %" PRId64 " bytes of control stacks, which are restored empty", more);
	copy(state, nodes, grown);
	free(state->priv_data);
	state->priv_data = grown;
	state->priv_size += (uint64_t)more;
	return 0;
}
