/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the state that CHECKPOINT gives, as far as the plugin reads it. */
#ifndef UNIT_RECORDS_FIXTURE_H
#define UNIT_RECORDS_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "kernel/state.h"

#define FIXTURE_BYTES (1u << 18)

struct fixture_records {
	uint8_t bytes[FIXTURE_BYTES];
	uint64_t size;
	uint32_t nr_devices, nr_bos, nr_objects;
};

static inline uint8_t *fixture_add(struct fixture_records *f, uint64_t size)
{
	uint8_t *ret = f->bytes + f->size;

	if (size > FIXTURE_BYTES - f->size)
		abort(); /* of a test program */
	f->size += size;
	return ret;
}

static inline void fixture_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Version 1 of a process with so many devices and BOs. */
static inline void fixture_begin(struct fixture_records *f, uint32_t nr_devices, uint32_t nr_bos)
{
	memset(f, 0, sizeof(*f));
	f->nr_devices = nr_devices;
	f->nr_bos = nr_bos;
	fixture_u32(fixture_add(f, 8 + 8 * (uint64_t)nr_devices + 272 * (uint64_t)nr_bos), 1);
}

static inline void fixture_queue(struct fixture_records *f, const struct queue_record *queue)
{
	uint8_t *at = fixture_add(f, 120 + (uint64_t)queue->mqd_size + queue->ctl_stack_size);

	memcpy(at + 8, &queue->ring_address, sizeof(queue->ring_address));
	memcpy(at + 16, &queue->ring_size, sizeof(queue->ring_size));
	memcpy(at + 24, &queue->read_address, sizeof(queue->read_address));
	memcpy(at + 32, &queue->write_address, sizeof(queue->write_address));
	memcpy(at + 48, &queue->eop_address, sizeof(queue->eop_address));
	fixture_u32(at + 72, queue->format);
	fixture_u32(at + 76, queue->number);
	fixture_u32(at + 80, queue->priority);
	fixture_u32(at + 84, queue->percent);
	fixture_u32(at + 88, queue->doorbell);
	fixture_u32(at + 92, queue->gws);
	fixture_u32(at + 100, queue->eop_size);
	memcpy(at + 56, &queue->cwsr_address, sizeof(queue->cwsr_address));
	fixture_u32(at + 64, queue->gpu_id);
	fixture_u32(at + 68, queue->type);
	fixture_u32(at + 104, queue->cwsr_size);
	fixture_u32(at + 108, queue->ctl_stack_size);
	fixture_u32(at + 112, queue->mqd_size);
	for (uint32_t i = 0; queue->type == QUEUE_TYPE_COMPUTE && i < queue->mqd_size / COMPUTE_MQD_SIZE; i++) {
		fixture_u32(at + 120 + i * COMPUTE_MQD_SIZE + 696, queue->mqd_stack_offset);
		fixture_u32(at + 120 + i * COMPUTE_MQD_SIZE + 700, queue->mqd_stack_size);
		fixture_u32(at + 120 + i * COMPUTE_MQD_SIZE + 704, queue->mqd_wave_offset);
	}
	f->nr_objects++;
}

static inline void fixture_event(struct fixture_records *f)
{
	fixture_u32(fixture_add(f, 64), 1);
	f->nr_objects++;
}

/* Of no memory. Returns where its attributes are, pairs of type and value. */
static inline uint8_t *fixture_svm_range(struct fixture_records *f)
{
	uint8_t *at = fixture_add(f, 24 + 8 * (4 + (uint64_t)f->nr_devices));

	fixture_u32(at, 2);
	f->nr_objects++;
	return at + 24;
}

static inline void fixture_svm_place(uint8_t *attrs, uint64_t start, uint64_t bytes)
{
	const uint64_t pages[] = { start >> 12, bytes >> 12 };

	memcpy(attrs - sizeof(pages), pages, sizeof(pages));
}

static inline void fixture_svm_attr(uint8_t *attrs, unsigned int i, uint32_t type, uint32_t value)
{
	fixture_u32(attrs + 8 * i, type);
	fixture_u32(attrs + 8 * i + 4, value);
}

static inline void fixture_xnack(struct fixture_records *f)
{
	fixture_u32(f->bytes + 4, 1);
}

static void **fixture_arrays;
static size_t fixture_nr_arrays;

/* Reads a state anew whose bytes or numbers have changed. The arrays live as long as the test program. */
static inline void fixture_read(struct kfd_state *state)
{
	state->queues = NULL;
	state->ranges = NULL;
	state->nr_queues = state->nr_ranges = state->nr_events = state->nr_signals = 0;
	state->has_event_page = false;
	if (records_read(state, state->nr_devices) || array_add(fixture_arrays, fixture_nr_arrays, state->queues) ||
	    array_add(fixture_arrays, fixture_nr_arrays, state->ranges))
		abort();
}

/* What of kfd_state the reader looks at, and what it has read. */
static inline struct kfd_state fixture_state(struct fixture_records *f)
{
	struct kfd_state state = {
		.nr_devices = f->nr_devices,
		.nr_bos = f->nr_bos,
		.nr_records = f->nr_bos,
		.nr_objects = f->nr_objects,
		.priv_data = f->bytes,
		.priv_size = f->size,
	};

	fixture_read(&state);
	return state;
}

#endif
