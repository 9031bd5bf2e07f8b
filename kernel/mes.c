// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that MES maps: which can be recreated, and in what order. What is asked of a queue is in its MQD, which
 * firmware writes when the queue is taken off, by struct v11_compute_mqd and struct v11_sdma_mqd of Linux'
 * v11_structs.h.
 */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "kernel/mes.h"

#define GFX11		  110000u
#define GFX12		  120000u
#define AQL_PACKET_DWORDS 16u
#define MAX_RING	  (1u << 30)
#define MAX_NUMBER	  1024u /* of a queue: KFD_MAX_NUM_OF_QUEUES_PER_PROCESS */

/* Dwords of the MQD of a compute queue. */
enum {
	ENGINE_0 = 23, /* CUs of shader engines on which the queue runs; those of the second array from bit 16 on */
	ENGINE_2 = 26,
	ENGINE_4 = 44,
	READ_INDEX = 96,
	PQ_RPTR = 138,
	EOP_RPTR = 168,
	EOP_WPTR,
};
#define EOP_INDEX 0x1fffu /* the index, beside flags */

/* Of the MQD of an SDMA queue. */
enum {
	RB_RPTR = 3,
	RB_RPTR_HI,
	RB_WPTR,
	RB_WPTR_HI,
	IB_SIZE = 14,
	SKIP_CNTL = 15,
	IB_SUB_REMAIN = 23,
	MIDCMD_CNTL = 42
};
#define MIDCMD_IS_VALID 1u /* in the middle of a command */

bool mes_maps(const struct topology_node *gpu)
{
	uint64_t gfx = topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION);

	return gfx >= GFX11 && gfx < GFX12;
}

static uint32_t dword(const struct queue_record *record, unsigned int i)
{
	uint32_t value;

	memcpy(&value, record->mqd + (size_t)i * sizeof(value), sizeof(value));
	return value;
}

static uint64_t pair(const struct queue_record *record, unsigned int i)
{
	return dword(record, i) | (uint64_t)dword(record, i + 1) << 32;
}

/* ---- which can be recreated ---- */

static bool is_busy(const struct queue_record *queue)
{
	if (queue->type == QUEUE_TYPE_COMPUTE)
		return queue->mqd_stack_offset != queue->mqd_stack_size ||
		       queue->mqd_wave_offset != queue->mqd_stack_size ||
		       (queue->mqd && (dword(queue, EOP_RPTR) ^ dword(queue, EOP_WPTR)) & EOP_INDEX);
	if (!queue->mqd || dword(queue, MIDCMD_CNTL) & MIDCMD_IS_VALID)
		return queue->mqd;
	/* One that waits before a command, such as for memory to change, has all that it is in its read index. */
	return pair(queue, RB_RPTR) != pair(queue, RB_WPTR) &&
	       (dword(queue, IB_SIZE) || dword(queue, SKIP_CNTL) || dword(queue, IB_SUB_REMAIN));
}

/* Why it can never be recreated; NULL: it can. */
static const char *never(const struct queue_record *queue)
{
	static const unsigned int engines[] = {
		ENGINE_0, ENGINE_0 + 1, ENGINE_2, ENGINE_2 + 1, ENGINE_4, ENGINE_4 + 1, ENGINE_4 + 2, ENGINE_4 + 3,
	};
	bool is_compute = queue->type == QUEUE_TYPE_COMPUTE;
	uint64_t size = queue->ring_size;
	uint32_t cus = UINT32_MAX;

	if (!is_compute && queue->type != QUEUE_TYPE_SDMA)
		return "it is of a kind that is not known there";
	if (!queue->percent)
		return "it is switched off (0 percent)";
	if (queue->mqd && (size < 1024 || size > MAX_RING || size & (size - 1) || queue->number >= MAX_NUMBER))
		return "its record has an unknown layout";
	if (is_compute && queue->format != QUEUE_FORMAT_AQL)
		return "its packets are PM4, and only AQL packets can bring a new queue to where it was";
	if (is_compute && queue->gws)
		return "it has a global wave sync (GWS)";
	if (queue->mqd && (is_compute ? queue->mqd_size != COMPUTE_MQD_SIZE : queue->mqd_size < SDMA_MQD_SIZE))
		return "its MQD has an unknown layout";
	/* The kernel makes these words from what SET_CU_MASK was given, which it does not tell. */
	for (size_t i = 0; is_compute && queue->mqd && i < ARRAY_SIZE(engines); i++)
		cus &= dword(queue, engines[i]);
	return cus == UINT32_MAX ? NULL : "it runs on some CUs only (CU mask)";
}

enum mes_verdict mes_judge(const struct queue_record *record, char why[LIMITS_TEXT_MAX])
{
	const char *reason = never(record);

	why[0] = '\0';
	if (reason) {
		snprintf(why, LIMITS_TEXT_MAX, "a queue of gfx11 has to be recreated, and %s", reason);
		return MES_NEVER;
	}
	if (!is_busy(record))
		return MES_FINE;
	snprintf(why, LIMITS_TEXT_MAX, "a queue of gfx11 is saved between %s only: dump again when the GPU is idle",
		 record->type == QUEUE_TYPE_COMPUTE ? "kernels" : "copies");
	return MES_BUSY;
}

/* The GPU where it is, or NULL for one that RESTORE brings back. */
static const struct topology_node *gpu_of_mes(const struct kfd_state *state, const struct topology *machine,
					      const struct queue_record *record)
{
	const struct topology_node *gpu = kfd_state_gpu(state, machine, record->gpu_id);

	return gpu && mes_maps(gpu) ? gpu : NULL;
}

/* ---- the list ---- */

static int by_number(const void *a, const void *b)
{
	const struct queue_record *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

int mes_list(const struct kfd_state *state, const struct topology *machine, bool by_user, struct queue_record **ret,
	     size_t *ret_nr)
{
	_cleanup_free_ struct queue_record *queues = NULL;
	_cleanup_free_ struct mes_step *steps = NULL;
	size_t nr = 0, nr_again = 0, nr_steps = 0;
	char why[LIMITS_TEXT_MAX];
	int err;

	*ret = NULL;
	*ret_nr = 0;
	for (uint32_t i = 0; i < state->nr_queues; i++) {
		struct queue_record queue = state->queues[i];
		const struct topology_node *gpu = gpu_of_mes(state, machine, &queue);
		bool is_compute = queue.type == QUEUE_TYPE_COMPUTE;

		if (gpu && mes_judge(&queue, why) != MES_FINE)
			return fail(-EOPNOTSUPP, "pid %u: queue %u on gpu %#x: %s", state->pid, queue.number,
				    queue.gpu_id, why);
		queue.is_restored = !gpu;
		if (gpu) {
			queue.actual_id = topology_gpu_id(gpu);
			queue.mapped_id = by_user ? queue.gpu_id : queue.actual_id;
			queue.minor = topology_minor(gpu);
			queue.done = pair(&queue, RB_RPTR);
			if (is_compute)
				queue.done = dword(&queue, PQ_RPTR) / AQL_PACKET_DWORDS % (queue.ring_size / AQL_PACKET_BYTES);
			queue.counted = is_compute ? pair(&queue, READ_INDEX) : 0;
			nr_again++;
		}
		if (array_add(queues, nr, queue))
			return -ENOMEM;
	}
	if (!nr_again)
		return 0;
	/* Of an image; each is compared with all others below. */
	if (nr > MAX_NUMBER)
		return fail(-EBADMSG, "pid %u: has %zu queues, more than a process can have (%u)", state->pid, nr, MAX_NUMBER);
	qsort(queues, nr, sizeof(*queues), by_number);
	err = mes_plan(queues, nr, &steps, &nr_steps); /* there has to be a way to make them */
	if (err)
		return err;
	*ret = steal_ptr(queues);
	*ret_nr = nr;
	return 0;
}

void mes_cut(struct kfd_state *state, const struct topology *machine)
{
	for (uint32_t i = state->nr_queues; i-- > 0;) {
		struct queue_record queue = state->queues[i];

		if (!gpu_of_mes(state, machine, &queue))
			continue;
		state->nr_objects--;
		state->nr_queues--;
		memmove(&state->queues[i], &state->queues[i + 1], (state->nr_queues - i) * sizeof(queue));
		records_cut(state, queue.at, QUEUE_RECORD_SIZE + (uint64_t)queue.mqd_size + queue.ctl_stack_size);
	}
}

/* ---- the order ---- */

struct plan {
	const struct queue_record *queues;
	size_t nr;
	struct mes_step *steps;
	size_t nr_steps;
	uint32_t lowest; /* no number below it is free: they are taken one after the other */
};

/* That neither a queue of RESTORE's nor one that was made has. */
static uint32_t lowest_number(struct plan *plan)
{
	bool is_taken;

	do {
		is_taken = false;
		for (size_t i = 0; i < plan->nr; i++)
			is_taken |= plan->queues[i].is_restored && plan->queues[i].number == plan->lowest;
		for (size_t i = 0; i < plan->nr_steps; i++)
			is_taken |= plan->steps[i].number == plan->lowest;
		plan->lowest += is_taken;
	} while (is_taken);
	return plan->lowest;
}

int mes_plan(const struct queue_record *queues, size_t nr, struct mes_step **ret, size_t *ret_nr)
{
	struct plan plan = { .queues = queues, .nr = nr };
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		const struct queue_record *queue = &queues[i];
		bool is_compute = queue->type == QUEUE_TYPE_COMPUTE;
		struct mes_step step = { .queue = i, .is_placeholder = true };
		uint32_t doorbell = 0;

		if (queue->is_restored)
			continue;
		/* Programs end compute queues rather than SDMA queues: one on the same GPU had the number, if there is one. */
		for (size_t k = nr; k-- > 0;)
			if (!queues[k].is_restored && queues[k].type == QUEUE_TYPE_COMPUTE && queues[k].gpu_id == queue->gpu_id)
				step.queue = k;
		while (!err && (step.number = lowest_number(&plan)) < queue->number)
			err = array_add(plan.steps, plan.nr_steps, step);
		/* Doorbells of compute queues on a GPU are taken from 0 on, each by one step. */
		for (size_t k = 0; k < plan.nr_steps; k++) {
			const struct queue_record *earlier = &queues[plan.steps[k].queue];

			doorbell += earlier->gpu_id == queue->gpu_id && earlier->type == QUEUE_TYPE_COMPUTE;
		}
		if (!err && is_compute && queue->doorbell != doorbell)
			err = fail(-EOPNOTSUPP,
				   "queue %u on gpu %#x: it has doorbell %u and would get %u when it is recreated, because earlier "
				   "queues have ended: let the program end this queue, or restart it",
				   queue->number, queue->gpu_id, queue->doorbell, doorbell);
		step = (struct mes_step){ .queue = i, .number = queue->number };
		if (!err)
			err = array_add(plan.steps, plan.nr_steps, step);
	}
	if (err) {
		free(plan.steps);
		return err;
	}
	*ret = plan.steps;
	*ret_nr = plan.nr_steps;
	return 0;
}
