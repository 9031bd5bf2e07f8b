// SPDX-License-Identifier: GPL-2.0-only
/* Makes the records of several XCCs' queues as large as those of one, without losing any. */
#include "amdgpu_plugin_util.h"
#include "kernel/fold.h"

#define SDMA_MQD_SIZE 512u /* of gfx9 */

bool fold_fits(const struct queue_record *record, uint64_t nr_xcc)
{
	uint64_t stacks = record->ctl_stack_size ? record->ctl_stack_size : nr_xcc * record->mqd_stack_size;
	uint64_t more = (nr_xcc - 1) * COMPUTE_MQD_SIZE, stack = stacks / nr_xcc;

	if (record->nr_mqds != nr_xcc || stacks % nr_xcc || more > stacks || record->mqd_stack_offset > stack)
		return false;
	return record->mqd_stack_offset >= (more < stack ? more : stack);
}

/* Bytes of the record that go, and where they begin. */
static uint64_t surplus(const struct queue_record *record, uint64_t nr_xcc, uint64_t *ret_at)
{
	uint64_t kept = record->type == QUEUE_TYPE_COMPUTE ? record->mqd_size : SDMA_MQD_SIZE;

	*ret_at = record->at + QUEUE_RECORD_SIZE + kept;
	if (nr_xcc < 2)
		return 0;
	if (record->type == QUEUE_TYPE_COMPUTE)
		return record->ctl_stack_size && fold_fits(record, nr_xcc) ? (nr_xcc - 1) * COMPUTE_MQD_SIZE : 0;
	return record->mqd_size == nr_xcc * SDMA_MQD_SIZE ? (nr_xcc - 1) * SDMA_MQD_SIZE : 0;
}

static uint64_t xccs_of(const struct kfd_state *state, const struct topology *machine, uint32_t user_id)
{
	int node = topology_find_gpu(machine, kfd_state_actual_gpu(state, user_id));

	return node < 0 ? 1 : topology_get(machine->nodes[node], TOPOLOGY_NUM_XCC);
}

void fold_queues(struct kfd_state *state, const struct topology *machine)
{
	struct queue_record record;
	struct records records;
	uint8_t *to = state->priv_data;
	uint64_t done = 0;

	if (records_begin(state, &records))
		return;
	/* What is moved lies before what is still to be read. */
	while (records_next_queue(&records, &record) > 0) {
		uint64_t at, drop = surplus(&record, xccs_of(state, machine, record.gpu_id), &at);
		uint32_t one = record.type == QUEUE_TYPE_COMPUTE ? COMPUTE_MQD_SIZE : SDMA_MQD_SIZE;

		if (!drop)
			continue;
		memcpy(state->priv_data + record.at + QUEUE_MQD_SIZE_AT, &one, sizeof(one));
		memmove(to, state->priv_data + done, at - done);
		to += at - done;
		done = at + drop;
	}
	memmove(to, state->priv_data + done, state->priv_size - done);
	to += state->priv_size - done;
	state->priv_size = (uint64_t)(to - state->priv_data);
}
