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

	if (record->type != QUEUE_TYPE_COMPUTE || !record->cwsr_address || record->ctl_stack_size || gfx < 90000)
		return STACK_SAVED;
	if (gfx >= 100000)
		return STACK_ELSEWHERE;
	return record->mqd_stack_size && record->mqd_stack_size <= MAX_STACK &&
	       record->mqd_stack_offset == record->mqd_stack_size && record->mqd_wave_offset == record->mqd_stack_size ?
		       STACK_EMPTY : STACK_LOST;
}

/* What there is to add, and for whom. */
struct addition {
	const struct topology *nodes;
	bool lost_too, elsewhere_too;
	uint64_t bytes;
	unsigned int nr_lost;
};

/* Whether the queue gets a stack. */
static bool wants_stack(const struct addition *addition, const struct queue_record *record, bool *ret_lost)
{
	int node = topology_find_gpu(addition->nodes, record->gpu_id);
	enum stack stack = node < 0 ? STACK_SAVED : stack_of(record, addition->nodes->nodes[node]);

	*ret_lost = stack == STACK_LOST && addition->lost_too;
	return stack == STACK_EMPTY || *ret_lost || (stack == STACK_ELSEWHERE && addition->elsewhere_too);
}

/* Of one XCC; a size that is nonsense becomes none, also for the GPU. */
static uint32_t stack_size(const struct queue_record *record)
{
	return record->mqd_stack_size <= MAX_STACK && record->nr_mqds <= MAX_XCCS ? record->mqd_stack_size : 0;
}

/* 0, or -EPROTO. */
static int sum(const struct kfd_state *state, struct addition *addition)
{
	struct queue_record record;
	struct records records;
	int r = records_begin(state, &records);
	bool lost;

	while (!r && (r = records_next_queue(&records, &record)) > 0) {
		r = 0;
		if (!wants_stack(addition, &record, &lost))
			continue;
		addition->bytes += stack_size(&record) * record.nr_mqds;
		addition->nr_lost += lost;
	}
	return r;
}

/* Copies the state; the stacks are zero. */
static void copy(const struct kfd_state *state, const struct addition *addition, uint8_t *to)
{
	struct queue_record record;
	struct records records;
	uint64_t done = 0;
	bool lost;

	records_begin(state, &records);
	while (records_next_queue(&records, &record) > 0) {
		uint64_t end = record.at + QUEUE_RECORD_SIZE + record.mqd_size;
		uint32_t size = stack_size(&record) * record.nr_mqds;

		if (!wants_stack(addition, &record, &lost))
			continue;
		memcpy(to, state->priv_data + done, end - done);
		memcpy(to + (record.at - done) + QUEUE_STACK_SIZE_AT, &size, sizeof(size));
		to += end - done;
		if (lost)
			records_empty_mqds(to - record.mqd_size, record.nr_mqds, stack_size(&record));
		to += size;
		done = end;
	}
	memcpy(to, state->priv_data + done, state->priv_size - done);
}

int stacks_add(struct kfd_state *state, const struct topology *nodes, const struct driver_release *driver,
	       unsigned int *ret_lost)
{
	struct addition addition = {
		.nodes = nodes, .lost_too = ret_lost, .elsewhere_too = ret_lost && driver_checks_queues(driver),
	};
	uint8_t *grown;
	int err = sum(state, &addition);

	if (ret_lost)
		*ret_lost = addition.nr_lost;
	if (err || (!addition.bytes && !addition.nr_lost))
		return err;
	grown = calloc(1, state->priv_size + addition.bytes);
	if (!grown)
		return -ENOMEM;
	pr_info("the driver left out %" PRIu64 " bytes of control stacks, which are restored empty\n", addition.bytes);
	copy(state, &addition, grown);
	free(state->priv_data);
	state->priv_data = grown;
	state->priv_size += addition.bytes;
	return 0;
}
