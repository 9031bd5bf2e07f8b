// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernels that are preempted. Where their state goes belongs to the process (the save area, in a buffer or in SVM) and
 * to the queue (control stacks behind the MQDs, up to gfx9). Who takes a queue over into another process has to bring
 * both back byte for byte: a kernel goes on only from a state that is whole.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "kfd.h"

#define WAVE_MAGIC 0x45564157ULL
#define WAVE_PARTS 3 /* of an XCC's save area are written: begin, middle, end */

/* One part of the save area. The first has the state, each says where it belongs. */
struct wave_part {
	u64 magic;
	u64 mark; /* kfd_mqd.wave */
	u32 xcc, part;
	struct kfd_wave wave;
};

u32 kfd_ctl_stack_size(const struct kfd_queue *q)
{
	return q->props.type == KFD_QUEUE_COMPUTE && kfd_gfx(q->pdd->gpu) < 100000 ? q->props.ctl_stack_size : 0;
}

int kfd_waves_init(struct kfd_queue *q)
{
	u64 size = (u64)kfd_ctl_stack_size(q) * kfd_num_xcc(q->pdd->gpu);

	if (!size)
		return 0;
	q->ctl_stack = kvzalloc(size, GFP_KERNEL | __GFP_NOWARN);
	return q->ctl_stack ? 0 : -ENOMEM;
}

void kfd_waves_free(struct kfd_queue *q)
{
	kvfree(q->ctl_stack);
}

static u64 part_va(const struct kfd_queue *q, u32 xcc, u32 part)
{
	u64 last = round_down(q->props.cwsr_size - sizeof(struct wave_part), sizeof(u64));

	return q->props.cwsr_va + (u64)xcc * q->props.cwsr_size +
	       round_down(last * part / (WAVE_PARTS - 1), sizeof(u64));
}

static void part_make(struct kfd_queue *q, u32 xcc, u32 part, struct wave_part *ret)
{
	*ret = (struct wave_part){
		.magic = WAVE_MAGIC, .mark = q->mqd.wave, .xcc = xcc, .part = part, .wave = q->wave
	};
}

/* The control stacks of all XCCs as one run of words. */
static u64 stack_words(const struct kfd_queue *q)
{
	return (u64)kfd_ctl_stack_size(q) * kfd_num_xcc(q->pdd->gpu) / sizeof(u64);
}

static u64 stack_word(const struct kfd_queue *q, u64 i)
{
	return (q->mqd.wave + i) * 0x9e3779b97f4a7c15ULL ^ q->wave.at;
}

/* A restored queue has as much room as was saved. */
static bool lacks_stack(const struct kfd_queue *q)
{
	return kfd_ctl_stack_size(q) < q->mqd.ctl_stack_size;
}

void kfd_waves_preempt(struct kfd_queue *q)
{
	u32 xcc, part;
	u64 i, fault;

	if (!q->wave.kernel || q->mqd.hung)
		return;
	if (q->props.cwsr_size < WAVE_PARTS * sizeof(struct wave_part)) {
		kfd_engine_hang(q, "a kernel cannot be preempted: the save area is too small", q->props.cwsr_va);
		return;
	}
	if (lacks_stack(q)) {
		kfd_engine_hang(q, "a kernel cannot be preempted: there is no room for its control stack",
				q->props.cwsr_va);
		return;
	}
	do
		q->mqd.wave = get_random_u64();
	while (!q->mqd.wave);
	for (xcc = 0; xcc < kfd_num_xcc(q->pdd->gpu); xcc++) {
		for (part = 0; part < WAVE_PARTS; part++) {
			struct wave_part p;

			part_make(q, xcc, part, &p);
			if (sim_vm_write(q->pdd->vm, part_va(q, xcc, part), &p, sizeof(p), &fault)) {
				kfd_engine_hang(q, "a kernel cannot be preempted: the save area is not mapped", fault);
				return;
			}
		}
	}
	for (i = 0; i < stack_words(q); i++)
		q->ctl_stack[i] = stack_word(q, i);
	memset(&q->wave, 0, sizeof(q->wave));
}

static int load_failed(struct kfd_queue *q, const char *what, u64 va)
{
	kfd_engine_hang(q, what, va);
	kfd_event_memory_fault(q->pdd, va);
	return -EFAULT;
}

int kfd_waves_load(struct kfd_queue *q)
{
	struct wave_part p, want;
	u32 xcc, part;
	u64 i, fault;
	int ret;

	if (lacks_stack(q))
		return load_failed(q, "a preempted kernel has no control stack", q->props.cwsr_va);
	for (xcc = 0; xcc < kfd_num_xcc(q->pdd->gpu); xcc++) {
		for (part = 0; part < WAVE_PARTS; part++) {
			u64 va = part_va(q, xcc, part);

			ret = sim_vm_read(q->pdd->vm, va, &p, sizeof(p), &fault);
			if (ret == -EFAULT)
				return load_failed(q, "the save area of a preempted kernel is not mapped", fault);
			if (ret)
				return ret;
			if (!xcc && !part)
				q->wave = p.wave;
			part_make(q, xcc, part, &want);
			if (memcmp(&p, &want, sizeof(p))) {
				q->wave.kernel = 0;
				return load_failed(q, "the save area does not hold the state of the preempted kernel",
						   va);
			}
		}
	}
	for (i = 0; i < stack_words(q); i++) {
		if (q->ctl_stack[i] == stack_word(q, i))
			continue;
		q->wave.kernel = 0;
		return load_failed(q, "the control stack is not that of the preempted kernel; word", i);
	}
	q->mqd.wave = 0;
	return 0;
}
