// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of CHECKPOINT's priv_data: process, devices, BOs, then queues, events and SVM ranges, each of which
 * begins with its kind. Sizes and offsets are those of the structs kfd_criu_*_priv_data of Linux' kfd_priv.h and
 * kfd_svm.h, unchanged from 5.18 to 7.3. Each byte belongs to a record, so a layout that is not this one shows.
 */
#include "kernel/records.h"
#include "amdgpu_plugin_util.h"

#define KNOWN_VERSION 1u /* KFD_CRIU_PRIV_VERSION */

#define PROCESS_SIZE 8u
#define DEVICE_SIZE  8u
#define BO_SIZE	     272u
#define QUEUE_SIZE   120u
#define EVENT_SIZE   64u
#define SVM_SIZE     24u
#define SVM_ATTR     8u
#define SVM_COMMON_ATTRS 4u /* besides one for each device */

enum object_kind { OBJECT_QUEUE, OBJECT_EVENT, OBJECT_SVM_RANGE };

static uint32_t get_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t get_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The next @size bytes, NULL when they are not there. */
static const uint8_t *take(struct records *records, uint64_t size)
{
	const uint8_t *ret = records->bytes + records->at;

	if (size > records->size - records->at)
		return NULL;
	records->at += size;
	return ret;
}

int records_begin(const struct kfd_state *state, struct records *ret)
{
	const uint8_t *process;

	*ret = (struct records){
		.bytes = state->priv_data,
		.size = state->priv_size,
		.nr_devices = state->nr_devices,
		.nr_left = state->nr_objects,
	};
	process = take(ret, PROCESS_SIZE);
	if (!process)
		return -EPROTO;
	ret->version = get_u32(process);
	if (ret->version != KNOWN_VERSION)
		return -EPROTO;
	return take(ret, (uint64_t)state->nr_devices * DEVICE_SIZE) && take(ret, (uint64_t)state->nr_bos * BO_SIZE) ?
		       0 : -EPROTO;
}

static int take_queue(struct records *records, struct queue_record *ret)
{
	const uint8_t *bytes = take(records, QUEUE_SIZE);

	if (!bytes)
		return -EPROTO;
	*ret = (struct queue_record){
		.cwsr_address = get_u64(bytes + 56),
		.gpu_id = get_u32(bytes + 64),
		.type = get_u32(bytes + 68),
		.doorbell_id = get_u32(bytes + 88),
		.sdma_id = get_u32(bytes + 96),
		.ctl_stack_size = get_u32(bytes + 108),
		.mqd_size = get_u32(bytes + 112),
	};
	return take(records, (uint64_t)ret->mqd_size + ret->ctl_stack_size) ? 1 : -EPROTO;
}

static uint64_t size_of(uint32_t kind, uint32_t nr_devices)
{
	return kind == OBJECT_EVENT ? EVENT_SIZE : SVM_SIZE + SVM_ATTR * (SVM_COMMON_ATTRS + (uint64_t)nr_devices);
}

int records_next_queue(struct records *records, struct queue_record *ret)
{
	for (; records->nr_left; records->nr_left--) {
		uint32_t kind;

		if (records->size - records->at < sizeof(kind))
			return -EPROTO;
		kind = get_u32(records->bytes + records->at);
		if (kind == OBJECT_QUEUE) {
			records->nr_left--;
			return take_queue(records, ret);
		}
		if (kind > OBJECT_SVM_RANGE || !take(records, size_of(kind, records->nr_devices)))
			return -EPROTO;
		if (kind == OBJECT_EVENT)
			records->nr_events++;
		else
			records->nr_svm_ranges++;
	}
	return records->at == records->size ? 0 : -EPROTO;
}

bool records_have_sdma_queue(const struct kfd_state *state, uint32_t gpu_id)
{
	struct queue_record queue;
	struct records records;
	bool found = false;

	if (records_begin(state, &records))
		return false;
	while (!found && records_next_queue(&records, &queue) > 0)
		found = queue.gpu_id == gpu_id && queue.type != QUEUE_TYPE_COMPUTE;
	return found;
}
