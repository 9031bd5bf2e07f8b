// SPDX-License-Identifier: GPL-2.0-only
/*
 * AQL queues: barriers, and dispatches of a few kernels that are built in
 * here. A kernel object is a 64-byte descriptor in GPU memory that starts with
 * a magic number and names one of them; kernel arguments are packed 64-bit
 * words. A dispatch that is running can be preempted (kfd_wave.c). Signals have
 * the layout that ROCr gives them.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "kfd.h"

#define AQL_PACKET_SIZE 64
#define AQL_HEADER_TYPE 0xff
#define AQL_DEP_SIGNALS 5
#define AQL_CHUNK_WORDS 1024 /* dwords per access */

enum aql_type {
	AQL_VENDOR,
	AQL_INVALID,
	AQL_KERNEL_DISPATCH,
	AQL_BARRIER_AND,
	AQL_AGENT_DISPATCH,
	AQL_BARRIER_OR,
};

/* Vendor packets of AMD: the byte behind the header. */
enum aql_vendor_format {
	AQL_VENDOR_PM4_IB = 1,
	AQL_VENDOR_BARRIER_VALUE = 2,
};

struct aql_dispatch {
	u16 header, setup;
	u16 workgroup[3], pad;
	u32 grid[3];
	u32 private_size, group_size;
	u64 kernel_object, kernarg;
	u64 reserved;
	u64 completion;
};

struct aql_barrier {
	u16 header, pad[3];
	u64 dep[AQL_DEP_SIGNALS];
	u64 reserved;
	u64 completion;
};

struct aql_barrier_value {
	u16 header;
	u8 format, pad[5];
	u64 signal;
	s64 value, mask;
	u32 condition; /* 0 ==, 1 !=, 2 <, 3 >= */
	u32 reserved[5];
	u64 completion;
};

union aql_packet {
	u16 header;
	u8 vendor_format[AQL_PACKET_SIZE]; /* [2] */
	struct aql_dispatch dispatch;
	struct aql_barrier barrier;
	struct aql_barrier_value value;
};

/* amd_signal_t */
struct aql_signal {
	s64 kind, value;
	u64 mailbox; /* slot of the event in the signal page, 0 for none */
	u32 event_id, pad;
	u64 start, end;
	u64 queue, reserved[2];
};

/* What lies at a kernel object's address. */
struct aql_kernel_object {
	u64 magic;
	u32 kernel;
	u32 reserved[13];
};

#define AQL_KERNEL_MAGIC 0x314b4d4953444b46ULL /* "FKDSIMK1", little endian */

static int aql_fault(struct kfd_queue *q, const char *what, u64 va)
{
	kfd_engine_hang(q, what, va);
	kfd_event_memory_fault(q->pdd, va);
	return -EFAULT;
}

static int aql_read(struct kfd_queue *q, u64 va, void *buf, size_t len, const char *what)
{
	u64 fault = va;
	int ret = sim_vm_read(q->pdd->vm, va, buf, len, &fault);

	return ret == -EFAULT ? aql_fault(q, what, fault) : ret;
}

static int aql_write(struct kfd_queue *q, u64 va, const void *buf, size_t len, const char *what)
{
	u64 fault = va;
	int ret = sim_vm_write(q->pdd->vm, va, buf, len, &fault);

	return ret == -EFAULT ? aql_fault(q, what, fault) : ret;
}

/* ---- signals ---- */

static u64 aql_decrement(void *arg, u64 old)
{
	return old - 1;
}

/* The order matters: value, mailbox, interrupt. */
static int aql_complete(struct kfd_queue *q, u64 handle, u64 began)
{
	u64 end = sim_gpu_clock(q->pdd->gpu), old, fault = handle, event;
	struct aql_signal signal;
	int ret;

	if (!handle)
		return 0;
	ret = aql_read(q, handle, &signal, sizeof(signal), "the completion signal is not mapped");
	if (ret)
		return ret;
	ret = aql_write(q, handle + offsetof(struct aql_signal, start), &began, sizeof(began),
			"the completion signal is not mapped for writing");
	if (!ret)
		ret = aql_write(q, handle + offsetof(struct aql_signal, end), &end, sizeof(end),
				"the completion signal is not mapped for writing");
	if (ret)
		return ret;
	if (sim_vm_atomic(q->pdd->vm, handle + offsetof(struct aql_signal, value), true, aql_decrement, NULL, &old,
			  &fault))
		return aql_fault(q, "the completion signal cannot be changed", fault);
	if (!signal.mailbox)
		return 0;
	event = signal.event_id;
	ret = aql_write(q, signal.mailbox, &event, sizeof(event), "the signal's mailbox is not mapped");
	if (!ret)
		kfd_event_interrupt(q->process, signal.event_id);
	return ret;
}

static int aql_signal_value(struct kfd_queue *q, u64 handle, s64 *ret_value)
{
	return aql_read(q, handle + offsetof(struct aql_signal, value), ret_value, sizeof(*ret_value),
			"a signal that a barrier waits for is not mapped");
}

/* ---- barriers: 0 when passed, -EAGAIN while not ---- */

static int aql_barrier(struct kfd_queue *q, const struct aql_barrier *barrier, bool all)
{
	unsigned int i, waiting = 0, done = 0;
	s64 value;
	int ret;

	for (i = 0; i < AQL_DEP_SIGNALS; i++) {
		if (!barrier->dep[i])
			continue;
		ret = aql_signal_value(q, barrier->dep[i], &value);
		if (ret)
			return ret;
		if (value)
			waiting++;
		else
			done++;
	}
	if (all)
		return waiting ? -EAGAIN : 0;
	return waiting && !done ? -EAGAIN : 0;
}

static int aql_barrier_value(struct kfd_queue *q, const struct aql_barrier_value *barrier)
{
	s64 value;
	int ret;

	if (!barrier->signal)
		return 0;
	ret = aql_signal_value(q, barrier->signal, &value);
	if (ret)
		return ret;
	value &= barrier->mask;
	switch (barrier->condition) {
	case 0:
		return value == barrier->value ? 0 : -EAGAIN;
	case 1:
		return value != barrier->value ? 0 : -EAGAIN;
	case 2:
		return value < barrier->value ? 0 : -EAGAIN;
	case 3:
		return value >= barrier->value ? 0 : -EAGAIN;
	default:
		return aql_fault(q, "a barrier compares in an unknown way", barrier->condition);
	}
}

/* ---- kernels: work item i does word i ---- */

struct aql_run {
	struct kfd_queue *q;
	struct kfd_wave *wave;
	u32 *a, *b; /* AQL_CHUNK_WORDS each */
};

typedef int aql_kernel(struct aql_run *run, u64 at, u32 words);

static u64 aql_word(u64 base, u64 at)
{
	return base + at * sizeof(u32);
}

static int aql_load(struct aql_run *run, u32 *buf, u64 base, u64 at, u32 words)
{
	return aql_read(run->q, aql_word(base, at), buf, words * sizeof(u32), "a kernel read what is not mapped");
}

static int aql_store(struct aql_run *run, const u32 *buf, u64 base, u64 at, u32 words)
{
	return aql_write(run->q, aql_word(base, at), buf, words * sizeof(u32), "a kernel wrote what is not mapped");
}

/* fill: destination, value */
static int aql_fill(struct aql_run *run, u64 at, u32 words)
{
	memset32(run->a, run->wave->args[1], words);
	return aql_store(run, run->a, run->wave->args[0], at, words);
}

/* add: destination, two sources */
static int aql_add(struct aql_run *run, u64 at, u32 words)
{
	int ret;
	u32 i;

	ret = aql_load(run, run->a, run->wave->args[1], at, words);
	if (!ret)
		ret = aql_load(run, run->b, run->wave->args[2], at, words);
	if (ret)
		return ret;
	for (i = 0; i < words; i++)
		run->a[i] += run->b[i];
	return aql_store(run, run->a, run->wave->args[0], at, words);
}

/* copy: destination, source */
static int aql_copy(struct aql_run *run, u64 at, u32 words)
{
	int ret = aql_load(run, run->a, run->wave->args[1], at, words);

	return ret ? ret : aql_store(run, run->a, run->wave->args[0], at, words);
}

/* checksum: destination of 8 bytes, source. FNV-1a, 64 bits, word by word. */
static int aql_checksum(struct aql_run *run, u64 at, u32 words)
{
	struct kfd_wave *wave = run->wave;
	int ret = aql_load(run, run->a, wave->args[1], at, words);
	u32 i;

	if (ret)
		return ret;
	if (!at)
		wave->sum = 0xcbf29ce484222325ULL;
	for (i = 0; i < words; i++)
		wave->sum = (wave->sum ^ run->a[i]) * 0x100000001b3ULL;
	if (at + words < wave->items)
		return 0;
	return aql_write(run->q, wave->args[0], &wave->sum, sizeof(wave->sum), "a kernel wrote what is not mapped");
}

/*
 * gather: destination of 8 bytes, source, a gate's address. Adds up words as far as the gate lets it: it waits as long
 * as the gate's value is not above the number of words that it has done, and so can be caught in the middle.
 */
static int aql_gather(struct aql_run *run, u64 at, u32 words)
{
	struct kfd_wave *wave = run->wave;
	u32 gate, i;
	int ret;

	ret = aql_read(run->q, wave->args[2], &gate, sizeof(gate), "a kernel read what is not mapped");
	if (ret)
		return ret;
	if (gate <= at)
		return -EAGAIN;
	ret = aql_load(run, run->a, wave->args[1], at, words);
	if (ret)
		return ret;
	for (i = 0; i < words; i++)
		wave->sum += run->a[i];
	return aql_write(run->q, wave->args[0], &wave->sum, sizeof(wave->sum), "a kernel wrote what is not mapped");
}

static aql_kernel *const aql_kernels[] = {
	[1] = aql_fill, [2] = aql_add, [3] = aql_copy, [4] = aql_checksum, [5] = aql_gather,
};

/* To its end, or until the queue has to stop. */
static int aql_run(struct aql_run *run)
{
	struct kfd_wave *wave = run->wave;
	u32 words;
	int ret;

	for (; wave->at < wave->items; wave->at += words) {
		if (READ_ONCE(run->q->stopping) || !kfd_queue_may_run(run->q))
			return -EAGAIN;
		words = min_t(u64, wave->items - wave->at, AQL_CHUNK_WORDS);
		ret = aql_kernels[wave->kernel](run, wave->at, words);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

static int aql_launch(struct kfd_queue *q, const struct aql_dispatch *packet)
{
	struct kfd_wave wave = { .began = sim_gpu_clock(q->pdd->gpu) };
	struct aql_kernel_object object;
	int ret;

	ret = aql_read(q, packet->kernel_object, &object, sizeof(object), "the kernel object is not mapped");
	if (ret)
		return ret;
	if (object.magic != AQL_KERNEL_MAGIC || object.kernel >= ARRAY_SIZE(aql_kernels) || !aql_kernels[object.kernel])
		return aql_fault(q, "the kernel is none of the built-in ones", packet->kernel_object);
	ret = aql_read(q, packet->kernarg, wave.args, sizeof(wave.args), "the kernel arguments are not mapped");
	if (ret)
		return ret;
	if (check_mul_overflow((u64)packet->grid[0], (u64)max(packet->grid[1], 1U), &wave.items) ||
	    check_mul_overflow(wave.items, (u64)max(packet->grid[2], 1U), &wave.items))
		return aql_fault(q, "the grid is too large", packet->grid[0]);
	wave.kernel = object.kernel;
	q->wave = wave;
	return 0;
}

/* Goes on with a kernel that is running or was preempted, else launches the packet's. */
static int aql_dispatch(struct kfd_queue *q, const struct aql_dispatch *packet)
{
	struct aql_run run = { .q = q, .wave = &q->wave };
	int ret = 0;

	if (q->mqd.wave)
		ret = kfd_waves_load(q);
	else if (!q->wave.kernel)
		ret = aql_launch(q, packet);
	if (ret)
		return ret;
	if (q->wave.kernel >= ARRAY_SIZE(aql_kernels) || !aql_kernels[q->wave.kernel])
		return aql_fault(q, "the preempted kernel is none of the built-in ones", q->wave.kernel);
	run.a = kmalloc_array(2 * AQL_CHUNK_WORDS, sizeof(u32), GFP_KERNEL);
	if (!run.a)
		return -ENOMEM;
	run.b = run.a + AQL_CHUNK_WORDS;
	ret = aql_run(&run);
	kfree(run.a);
	if (ret != -EAGAIN && ret != -ENOMEM)
		q->wave.kernel = 0;
	return ret;
}

/* ---- the queue ---- */

static int aql_execute(struct kfd_queue *q, const union aql_packet *packet)
{
	switch (packet->header & AQL_HEADER_TYPE) {
	case AQL_KERNEL_DISPATCH:
		return aql_dispatch(q, &packet->dispatch);
	case AQL_BARRIER_AND:
		return aql_barrier(q, &packet->barrier, true);
	case AQL_BARRIER_OR:
		return aql_barrier(q, &packet->barrier, false);
	case AQL_VENDOR:
		if (packet->vendor_format[2] == AQL_VENDOR_BARRIER_VALUE)
			return aql_barrier_value(q, &packet->value);
		/* ROCr invalidates caches this way: here they are always coherent. */
		if (packet->vendor_format[2] == AQL_VENDOR_PM4_IB)
			return 0;
		fallthrough;
	default:
		return aql_fault(q, "the packet's type is not one that can be executed", packet->header);
	}
}

/* Hands the packet's slot back to the process and moves on. */
static int aql_retire(struct kfd_queue *q, u64 slot, const union aql_packet *packet, u64 began)
{
	const u16 invalid = AQL_INVALID;
	u64 rptr = q->mqd.rptr + 1;
	int ret;

	ret = aql_write(q, slot, &invalid, sizeof(invalid), "the ring is not mapped for writing");
	if (ret)
		return ret;
	q->mqd.rptr = rptr;
	q->mqd.packets++;
	ret = aql_write(q, q->props.rptr_va, &rptr, sizeof(rptr), "the read index is not mapped for writing");
	/* All packet formats have it at the same place. */
	return ret ? ret : aql_complete(q, packet->barrier.completion, began);
}

/* 0 when the next packet is there, -ENODATA when none is. */
static int aql_fetch(struct kfd_queue *q, u64 slot, union aql_packet *packet)
{
	u64 wptr;
	int ret;

	ret = aql_read(q, q->props.wptr_va, &wptr, sizeof(wptr), "the write index is not mapped");
	if (ret)
		return ret;
	if (wptr == q->mqd.rptr)
		return -ENODATA;
	/* Its writer publishes the header last, so it is read first. */
	ret = aql_read(q, slot, &packet->header, sizeof(packet->header), "the ring is not mapped");
	if (ret)
		return ret;
	if ((packet->header & AQL_HEADER_TYPE) == AQL_INVALID)
		return -ENODATA;
	return aql_read(q, slot, packet, sizeof(*packet), "the ring is not mapped");
}

/* Other compute queues take PM4 packets, for which there is no interpreter. */
static int aql_refuse_pm4(struct kfd_queue *q)
{
	if (kfd_doorbell_read(q))
		kfd_engine_hang(q, "PM4 packets are not simulated; doorbell", kfd_doorbell_read(q));
	return 0;
}

int kfd_aql_step(struct kfd_queue *q)
{
	union aql_packet packet;
	u64 slot, began;
	int ret;

	if (q->props.format != KFD_QUEUE_AQL)
		return aql_refuse_pm4(q);
	slot = q->props.ring_va + (q->mqd.rptr & (q->props.ring_size / AQL_PACKET_SIZE - 1)) * AQL_PACKET_SIZE;
	ret = aql_fetch(q, slot, &packet);
	if (!ret)
		ret = kfd_engine_check(q);
	if (!ret) {
		began = sim_gpu_clock(q->pdd->gpu);
		ret = aql_execute(q, &packet);
		if ((packet.header & AQL_HEADER_TYPE) == AQL_KERNEL_DISPATCH)
			began = q->wave.began;
	}
	if (!ret)
		ret = aql_retire(q, slot, &packet, began);
	if (!ret)
		return 1;
	return ret == -EAGAIN || ret == -ENOMEM ? -EAGAIN : 0;
}
