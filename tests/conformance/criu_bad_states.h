/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For criu_restore.c: ways to spoil a state that was taken out, and the error
 * that RESTORE then has to answer. The state begins with an SDMA queue, then
 * two events, the first of them with the signal page.
 */
#ifndef CONFORMANCE_CRIU_BAD_STATES_H
#define CONFORMANCE_CRIU_BAD_STATES_H

#include "criu_test.h"

static struct queue_priv *queue_of(struct state *s)
{
	return (struct queue_priv *)state_objects(s);
}

static struct event_priv *event_of(struct state *s)
{
	return (struct event_priv *)(state_objects(s) + 120 + queue_of(s)->mqd_size);
}

static struct bo_bucket *bucket_with(struct state *s, uint32_t flag)
{
	uint32_t i;

	for (i = 0; i < s->info.num_bos; i++)
		if (s->bos[i].flags & flag)
			return &s->bos[i];
	errx(1, "no buffer with flag %#x", flag);
}

/* Puts a second copy of the first @bytes of the objects in front of them. */
static void duplicate_first_object(struct state *s, size_t bytes)
{
	uint8_t *objects = state_objects(s);

	memmove(objects + bytes, objects, s->info.priv_size - (objects - s->priv));
	s->info.priv_size += bytes;
	s->info.num_objects++;
}

/* One line each. */
/* clang-format off */
static void bad_version(struct state *s) { s->priv[0] = 2; }
static void bad_xnack(struct state *s) { s->priv[4] = 1; }
static void bad_device_count(struct state *s) { s->info.num_devices++; }
static void bad_no_devices(struct state *s) { s->info.num_devices = 0; }
static void bad_user_id(struct state *s) { s->devices[0].user_gpu_id = 0; }
static void bad_actual_id(struct state *s) { s->devices[0].actual_gpu_id = 0xfffe; }
static void bad_drm_fd(struct state *s) { s->devices[0].drm_fd = 999; }
static void bad_drm_file(struct state *s) { s->devices[0].drm_fd = 0; }
static void bad_bo_gpu(struct state *s) { s->bos[0].gpu_id = 0xfffe; }
static void bad_bo_number(struct state *s) { state_bo_priv(s, 0)->idr_handle = 0x80000000; }
static void bad_bo_same_number(struct state *s)
{
	state_bo_priv(s, 1)->idr_handle = state_bo_priv(s, 0)->idr_handle;
}
static void bad_bo_flags(struct state *s) { s->bos[0].flags = MEM_WRITABLE; }
static void bad_bo_mapped(struct state *s) { state_bo_priv(s, 0)->mapped[0] = 0xfffe; }
static void bad_bo_size(struct state *s) { bucket_with(s, MEM_VRAM)->size = 1ull << 50; }
static void bad_doorbell_size(struct state *s) { bucket_with(s, MEM_DOORBELL)->size = PAGE; }
static void bad_mmio_size(struct state *s) { bucket_with(s, MEM_MMIO)->size = 2 * PAGE; }
static void bad_object_type(struct state *s) { queue_of(s)->object_type = 3; }
static void bad_left_over(struct state *s) { s->info.num_objects--; }
static void bad_too_short(struct state *s) { s->info.priv_size -= 8; }
static void bad_bo_count(struct state *s) { s->info.num_bos = 1u << 30; }
static void bad_queue_type(struct state *s) { queue_of(s)->type = 6; }
static void bad_queue_hiq(struct state *s) { queue_of(s)->type = 2; queue_of(s)->mqd_size = 2048; }
static void bad_queue_gpu(struct state *s) { queue_of(s)->gpu_id = 0xfffe; }
static void bad_queue_mqd(struct state *s) { queue_of(s)->mqd_size = 1u << 30; }
static void bad_queue_stack(struct state *s) { queue_of(s)->ctl_stack_size = 1u << 30; }
static void bad_queue_id(struct state *s) { queue_of(s)->q_id = 1024; }
static void bad_queue_sdma(struct state *s) { queue_of(s)->sdma_id = 1000; }
static void bad_queue_doorbell(struct state *s) { queue_of(s)->doorbell_id++; }
static void bad_queue_twice(struct state *s) { duplicate_first_object(s, 120 + queue_of(s)->mqd_size); }
static void bad_queue_sdma_twice(struct state *s)
{
	duplicate_first_object(s, 120 + queue_of(s)->mqd_size);
	queue_of(s)->q_id = 5;
}
static void bad_event_type(struct state *s) { event_of(s)->type = 7; }
static void bad_event_id(struct state *s) { event_of(s)->event_id = 4096; }
static void bad_event_number(struct state *s) { event_of(s)->event_id = 0x80000000; }
static void bad_event_same_id(struct state *s)
{
	event_of(s)[1].type = 0;
	event_of(s)[1].event_id = event_of(s)[0].event_id;
}
static void bad_event_page(struct state *s) { event_of(s)->user_handle++; event_of(s)->user_handle += 100; }
static void bad_event_page_twice(struct state *s) { event_of(s)[1].user_handle = event_of(s)->user_handle; }

/* clang-format on */

static const struct {
	const char *name;
	void (*spoil)(struct state *s);
	int want;
} bad_states[] = {
	{ "another version", bad_version, EINVAL },
	{ "XNACK, which the GPU does not have", bad_xnack, EPERM },
	{ "a device too many", bad_device_count, EINVAL },
	{ "no devices", bad_no_devices, EINVAL },
	{ "user gpu id 0", bad_user_id, EINVAL },
	{ "an actual gpu id that is no GPU", bad_actual_id, EINVAL },
	{ "a render fd that is not open", bad_drm_fd, EINVAL },
	{ "a render fd that is something else", bad_drm_file, EINVAL },
	{ "a buffer on an unknown GPU", bad_bo_gpu, ENODEV },
	{ "a buffer number beyond INT_MAX", bad_bo_number, EINVAL },
	{ "a buffer number twice", bad_bo_same_number, ENOMEM },
	{ "a buffer of no kind", bad_bo_flags, EINVAL },
	{ "a buffer mapped on an unknown GPU", bad_bo_mapped, EINVAL },
	{ "a buffer larger than the GPU", bad_bo_size, ENOMEM },
	{ "doorbells of one page", bad_doorbell_size, EINVAL },
	{ "an MMIO page of two", bad_mmio_size, EINVAL },
	{ "more buffers than private data", bad_bo_count, EINVAL },
	{ "an unknown kind of object", bad_object_type, EINVAL },
	{ "private data left over", bad_left_over, EINVAL },
	{ "private data that is too short", bad_too_short, EINVAL },
	{ "an unknown queue type", bad_queue_type, EINVAL },
	{ "a queue of the kernel's", bad_queue_hiq, EINVAL },
	{ "a queue on an unknown GPU", bad_queue_gpu, EINVAL },
	{ "an MQD that is too long", bad_queue_mqd, EINVAL },
	{ "a control stack beyond the private data", bad_queue_stack, EINVAL },
	{ "a queue id of 1024", bad_queue_id, EINVAL },
	{ "an SDMA queue that the GPU does not have", bad_queue_sdma, EINVAL },
	{ "a doorbell that is not the SDMA queue's", bad_queue_doorbell, EINVAL },
	{ "a queue id twice", bad_queue_twice, ENOSPC },
	{ "an SDMA queue twice", bad_queue_sdma_twice, EBUSY },
	{ "an event that cannot be restored", bad_event_type, EINVAL },
	{ "a signal event without a slot", bad_event_id, EINVAL },
	{ "an event id beyond INT_MAX", bad_event_number, EINVAL },
	{ "an event id twice", bad_event_same_id, ENOSPC },
	{ "a signal page that is no buffer", bad_event_page, EINVAL },
	{ "a signal page twice", bad_event_page_twice, EINVAL },
};

#endif
