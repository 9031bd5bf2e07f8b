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
	bool lost;
	int r;

	records_begin(state, &records);
	while ((r = records_next_queue(&records, &record)) > 0) {
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

/* ---- queues of several XCCs: records as large as those of one, without losing any ---- */

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
	const struct topology_node *gpu = kfd_state_gpu(state, machine, user_id);

	return gpu ? topology_get(gpu, TOPOLOGY_NUM_XCC) : 1;
}

void fold_queues(struct kfd_state *state, const struct topology *machine)
{
	struct queue_record record;
	struct records records;
	uint8_t *to = state->priv_data;
	uint64_t done = 0;

	records_begin(state, &records);
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
