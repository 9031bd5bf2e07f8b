// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that MES maps: which can be made again, and in what order. What is asked of a queue is in its MQD, which
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

/* ---- which can be made again ---- */

static bool compute_is_busy(const struct queue_record *record)
{
	return record->mqd_stack_offset != record->mqd_stack_size ||
	       record->mqd_wave_offset != record->mqd_stack_size ||
	       (record->mqd && (dword(record, EOP_RPTR) ^ dword(record, EOP_WPTR)) & EOP_INDEX);
}

/* One that waits before a command, such as for memory to change, has all that it is in its read index. */
static bool sdma_is_busy(const struct queue_record *record)
{
	if (!record->mqd || pair(record, RB_RPTR) == pair(record, RB_WPTR))
		return record->mqd && dword(record, MIDCMD_CNTL) & MIDCMD_IS_VALID;
	return dword(record, MIDCMD_CNTL) & MIDCMD_IS_VALID || dword(record, IB_SIZE) || dword(record, SKIP_CNTL) ||
	       dword(record, IB_SUB_REMAIN);
}

/* Of a CU mask, which the kernel makes anew from what it is asked for by SET_CU_MASK, and does not tell. */
static bool is_masked(const struct queue_record *record)
{
	static const unsigned int places[] = {
		ENGINE_0, ENGINE_0 + 1, ENGINE_2, ENGINE_2 + 1, ENGINE_4, ENGINE_4 + 1, ENGINE_4 + 2, ENGINE_4 + 3,
	};
	uint32_t all = UINT32_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		all &= dword(record, places[i]);
	return all != UINT32_MAX;
}

static const char *compute_never(const struct queue_record *record)
{
	if (record->format != QUEUE_FORMAT_AQL)
		return "its packets are PM4, and only AQL packets can bring a new queue to where it was";
	if (record->gws)
		return "it has a global wave sync (GWS)";
	if (record->mqd && record->mqd_size != COMPUTE_MQD_SIZE)
		return "its MQD has an unknown layout";
	return record->mqd && is_masked(record) ? "it runs on some CUs only (CU mask)" : NULL;
}

static const char *never(const struct queue_record *record)
{
	uint64_t size = record->ring_size;

	if (record->type != QUEUE_TYPE_COMPUTE && record->type != QUEUE_TYPE_SDMA)
		return "it is of a kind that is not known there";
	if (!record->percent)
		return "it is switched off (0 percent)";
	if (record->mqd && (size < 1024 || size > MAX_RING || size & (size - 1) || record->number >= MAX_NUMBER))
		return "its record has an unknown layout";
	if (record->type == QUEUE_TYPE_COMPUTE)
		return compute_never(record);
	return record->mqd && record->mqd_size < SDMA_MQD_SIZE ? "its MQD has an unknown layout" : NULL;
}

enum mes_verdict mes_judge(const struct queue_record *record, char why[LIMITS_TEXT_MAX])
{
	const char *reason = never(record);

	why[0] = '\0';
	if (reason) {
		snprintf(why, LIMITS_TEXT_MAX, "a queue of gfx11 has to be made again, and %s", reason);
		return MES_NEVER;
	}
	if (!(record->type == QUEUE_TYPE_COMPUTE ? compute_is_busy : sdma_is_busy)(record))
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

enum mes_verdict mes_judge_all(const struct kfd_state *state, const struct topology *machine)
{
	enum mes_verdict worst = MES_FINE;
	char why[LIMITS_TEXT_MAX];
	struct queue_record record;
	struct records records;

	records_begin(state, &records);
	while (records_next_queue(&records, &record) > 0) {
		enum mes_verdict one = gpu_of_mes(state, machine, &record) ? mes_judge(&record, why) : MES_FINE;

		worst = one > worst ? one : worst;
	}
	return worst;
}

/* ---- the list ---- */

static struct mes_queue from_record(const struct queue_record *record, const struct topology_node *gpu, bool by_user)
{
	bool is_compute = record->type == QUEUE_TYPE_COMPUTE;
	uint32_t actual_id = topology_gpu_id(gpu);
	return (struct mes_queue){
		.number = record->number,
		.type = record->type,
		.gpu_id = record->gpu_id,
		.mapped_id = by_user ? record->gpu_id : actual_id,
		.actual_id = actual_id,
		.minor = topology_minor(gpu),
		.doorbell = record->doorbell,
		.percent = record->percent,
		.priority = record->priority,
		.ring = record->ring_address,
		.ring_size = record->ring_size,
		.read_index = record->read_address,
		.write_index = record->write_address,
		.eop = record->eop_address,
		.cwsr = record->cwsr_address,
		.eop_size = record->eop_size,
		.cwsr_size = record->cwsr_size,
		.stack_size = record->mqd_stack_size,
		.at = is_compute ? dword(record, PQ_RPTR) / AQL_PACKET_DWORDS % (record->ring_size / AQL_PACKET_BYTES)
				 : pair(record, RB_RPTR),
		.counted = is_compute ? pair(record, READ_INDEX) : 0,
	};
}

static int by_number(const void *a, const void *b)
{
	const struct mes_queue *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int add_to_queues(const struct kfd_state *state, const struct queue_record *record,
			 const struct topology_node *gpu, bool by_user, struct mes_queue **queues, size_t *nr)
{
	struct mes_queue queue = { .is_restored = true, .number = record->number };
	char why[LIMITS_TEXT_MAX];

	if (gpu && mes_judge(record, why) != MES_FINE)
		return fail(-EOPNOTSUPP, "pid %u: queue %u on gpu %#x: %s", state->pid, record->number, record->gpu_id,
			    why);
	if (gpu)
		queue = from_record(record, gpu, by_user);
	return array_add(*queues, *nr, queue);
}

/* That there is a way to make them. */
static int check_plan(const struct mes_queue *queues, size_t nr)
{
	_cleanup_free_ struct mes_step *steps = NULL;
	size_t nr_steps = 0;

	return mes_plan(queues, nr, &steps, &nr_steps);
}

int mes_list(const struct kfd_state *state, const struct topology *machine, bool by_user, struct mes_queue **ret,
	     size_t *ret_nr)
{
	_cleanup_free_ struct mes_queue *queues = NULL;
	struct queue_record record;
	struct records records;
	size_t nr = 0, nr_again = 0;
	int r, err;

	*ret = NULL;
	*ret_nr = 0;
	records_begin(state, &records);
	while ((r = records_next_queue(&records, &record)) > 0) {
		const struct topology_node *gpu = gpu_of_mes(state, machine, &record);

		err = add_to_queues(state, &record, gpu, by_user, &queues, &nr);
		if (err)
			return err;
		nr_again += gpu != NULL;
	}
	if (r || !nr_again)
		return r;
	qsort(queues, nr, sizeof(*queues), by_number);
	err = check_plan(queues, nr);
	if (err)
		return err;
	*ret = steal_ptr(queues);
	*ret_nr = nr;
	return 0;
}

int mes_check(const struct kfd_state *state, const struct topology *machine)
{
	_cleanup_free_ struct mes_queue *queues = NULL;
	size_t nr;

	return mes_list(state, machine, true, &queues, &nr);
}

int mes_cut(struct kfd_state *state, const struct topology *machine)
{
	struct queue_record record;
	struct records records;
	int r;

	records_begin(state, &records);
	while ((r = records_next_queue(&records, &record)) > 0) {
		if (!gpu_of_mes(state, machine, &record))
			continue;
		records_cut(state, &records, record.at,
			    QUEUE_RECORD_SIZE + (uint64_t)record.mqd_size + record.ctl_stack_size);
		state->nr_objects--;
	}
	return r;
}

/* ---- the order ---- */

struct plan {
	const struct mes_queue *queues;
	size_t nr;
	struct mes_step *steps;
	size_t nr_steps;
};

static bool number_is_taken(const struct plan *plan, uint32_t number)
{
	bool taken = false;

	for (size_t i = 0; !taken && i < plan->nr; i++)
		taken = plan->queues[i].is_restored && plan->queues[i].number == number;
	for (size_t i = 0; !taken && i < plan->nr_steps; i++)
		taken = plan->steps[i].number == number;
	return taken;
}

static uint32_t lowest_number(const struct plan *plan)
{
	uint32_t number = 0;

	while (number_is_taken(plan, number))
		number++;
	return number;
}

/* Doorbells of compute queues on a GPU are taken from 0 on, each by one step. */
static uint32_t lowest_doorbell(const struct plan *plan, uint32_t gpu_id)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < plan->nr_steps; i++) {
		const struct mes_queue *queue = &plan->queues[plan->steps[i].queue];

		nr += queue->gpu_id == gpu_id && queue->type == QUEUE_TYPE_COMPUTE;
	}
	return nr;
}

/* Programs end compute queues rather than SDMA queues: one on the same GPU had the number, where there are any. */
static size_t filler_for(const struct plan *plan, size_t i)
{
	for (size_t k = 0; k < plan->nr; k++)
		if (!plan->queues[k].is_restored && plan->queues[k].type == QUEUE_TYPE_COMPUTE &&
		    plan->queues[k].gpu_id == plan->queues[i].gpu_id)
			return k;
	return i;
}

static int add_queue(struct plan *plan, size_t i)
{
	const struct mes_queue *queue = &plan->queues[i];
	struct mes_step step = { .queue = filler_for(plan, i), .is_filler = true };
	uint32_t doorbell;
	int err = 0;

	for (step.number = lowest_number(plan); !err && step.number < queue->number; step.number = lowest_number(plan))
		err = array_add(plan->steps, plan->nr_steps, step);
	if (err)
		return err;
	doorbell = lowest_doorbell(plan, queue->gpu_id);
	if (queue->type == QUEUE_TYPE_COMPUTE && queue->doorbell != doorbell)
		return fail(
			-EOPNOTSUPP,
			"queue %u on gpu %#x: it has doorbell %u and would get %u when it is made again, because earlier queues "
			"have ended: let the program end this queue, or restart it",
			queue->number, queue->gpu_id, queue->doorbell, doorbell);
	step = (struct mes_step){ .queue = i, .number = queue->number };
	return array_add(plan->steps, plan->nr_steps, step);
}

int mes_plan(const struct mes_queue *queues, size_t nr, struct mes_step **ret, size_t *ret_nr)
{
	struct plan plan = { .queues = queues, .nr = nr };
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++)
		err = queues[i].is_restored ? 0 : add_queue(&plan, i);
	if (err) {
		free(plan.steps);
		return err;
	}
	*ret = plan.steps;
	*ret_nr = plan.nr_steps;
	return 0;
}
