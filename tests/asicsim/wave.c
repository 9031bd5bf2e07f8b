// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernels that are preempted (CWSR). Their state goes into the queue's save area, which belongs to the process, and
 * into the control stack, which the driver has one page behind the MQD, or on gfx11 the save area. A kernel goes on only from a state that is
 * whole: whoever moves a queue into another process has to bring both back byte for byte.
 */
#include <linux/random.h>

#include "chip.h"
#include "v9_structs.h"

#define WAVE_MAGIC 0x45564157ULL
#define NR_PARTS   3  /* of the save area that are written: begin, middle, end */
#define HEAD_BYTES 64 /* of a save area, which are the program's and the KFD's */

struct wave_part {
	u64 magic;
	u64 mark; /* of this preemption */
	u64 part; /* counted over the save areas of all XCCs */
	struct chip_wave wave;
};

static u64 nr_parts(const struct chip_queue *q)
{
	return (u64)NR_PARTS * q->nr_xccs;
}

static u64 nr_stack_words(const struct chip_queue *q)
{
	return q->stack_size / sizeof(u64) * q->nr_xccs;
}

static u64 part_va(const struct chip_queue *q, u64 part)
{
	u64 room = q->save_size - q->stack_size - sizeof(struct wave_part);

	return q->save_addr + part / NR_PARTS * q->save_size + q->stack_size +
	       round_down(room * (part % NR_PARTS) / (NR_PARTS - 1), sizeof(u64));
}

static struct wave_part part_make(const struct chip_queue *q, u64 mark, u64 part)
{
	return (struct wave_part){ .magic = WAVE_MAGIC, .mark = mark, .part = part, .wave = q->wave };
}

static u64 stack_word(const struct chip_queue *q, u64 mark, u64 i)
{
	return (mark + i) * 0x9e3779b97f4a7c15ULL ^ q->wave.at;
}

/* Where the @i-th word of the control stacks is: behind an MQD, or at the save area's begin, but for its head. */
static u64 stack_at(struct chip *chip, const struct chip_queue *q, u64 i)
{
	u64 words = q->stack_size / sizeof(u64);

	if (chip_model_of(chip->adev)->mes)
		return q->save_addr + i * sizeof(u64);
	return q->mqd_addr + i / words * q->mqd_stride + PAGE_SIZE + i % words * sizeof(u64);
}

static const struct chip_vm *stack_vm(struct chip *chip, const struct chip_queue *q)
{
	return chip_model_of(chip->adev)->mes ? &q->vm : &chip_kernel_vm;
}

static u64 first_stack_word(struct chip *chip)
{
	return chip_model_of(chip->adev)->mes ? HEAD_BYTES / sizeof(u64) : 0;
}

int wave_set_offsets(struct chip *chip, struct chip_queue *q, u32 stack, u32 wave)
{
	return chip_write(chip, &chip_kernel_vm, q->mqd_addr + offsetof(struct v9_mqd, cp_hqd_cntl_stack_offset),
			  &stack, sizeof(stack), NULL)
		       ?: chip_write(chip, &chip_kernel_vm,
				     q->mqd_addr + offsetof(struct v9_mqd, cp_hqd_wg_state_offset), &wave, sizeof(wave),
				     NULL);
}

/* Offsets at the end of the stack say that there is no state. */
static int set_offsets(struct chip *chip, struct chip_queue *q, bool saved)
{
	q->wave_is_saved = saved;
	return wave_set_offsets(chip, q, saved ? 0 : q->stack_size, saved ? q->save_size : q->stack_size);
}

void wave_read_mqd(struct chip_queue *q, const void *mqd)
{
	const struct v9_mqd *m = mqd;

	q->save_addr = m->cp_hqd_ctx_save_base_addr_lo | (u64)m->cp_hqd_ctx_save_base_addr_hi << 32;
	q->save_size = m->cp_hqd_ctx_save_size;
	q->stack_size = m->cp_hqd_cntl_stack_size;
	q->wave_is_saved = q->save_addr && m->cp_hqd_cntl_stack_offset != m->cp_hqd_cntl_stack_size;
}

void wave_save(struct chip *chip, struct chip_queue *q)
{
	u64 mark = get_random_u64(), word, fault = q->save_addr;
	int err = 0;

	if (q->sdma || !q->wave.kernel || q->stopped)
		return;
	if (q->save_size < q->stack_size + NR_PARTS * sizeof(struct wave_part))
		err = -ENOSPC;
	for (u64 i = 0; i < nr_parts(q) && !err; i++) {
		struct wave_part part = part_make(q, mark, i);

		err = chip_write(chip, &q->vm, part_va(q, i), &part, sizeof(part), &fault);
	}
	for (u64 i = first_stack_word(chip); i < nr_stack_words(q) && !err; i++) {
		word = stack_word(q, mark, i);
		err = chip_write(chip, stack_vm(chip, q), stack_at(chip, q, i), &word, sizeof(word), &fault);
	}
	err = err ?: set_offsets(chip, q, true);
	if (err)
		pr_err("asicsim: compute queue of pasid %#x: its kernel cannot be preempted: error %d at %#llx\n",
		       q->vm.pasid, err, fault);
}

static int load_failed(struct chip_queue *q, const char *what, u64 va, u64 *fault)
{
	pr_err("asicsim: compute queue of pasid %#x: a preempted kernel cannot go on: %s at %#llx\n", q->vm.pasid, what,
	       va);
	*fault = va;
	return -EFAULT;
}

int wave_load(struct chip *chip, struct chip_queue *q, u64 *fault)
{
	struct wave_part part, want;
	u64 mark = 0, word;
	int err;

	if (q->save_size < q->stack_size + NR_PARTS * sizeof(struct wave_part))
		return load_failed(q, "the save area is too small", q->save_addr, fault);
	for (u64 i = 0; i < nr_parts(q); i++) {
		err = chip_read(chip, &q->vm, part_va(q, i), &part, sizeof(part), fault);
		if (err)
			return err;
		if (!i) {
			mark = part.mark;
			q->wave = part.wave;
		}
		want = part_make(q, mark, i);
		if (memcmp(&part, &want, sizeof(part)))
			return load_failed(q, "the save area does not hold its state", part_va(q, i), fault);
	}
	for (u64 i = first_stack_word(chip); i < nr_stack_words(q); i++) {
		err = chip_read(chip, stack_vm(chip, q), stack_at(chip, q, i), &word, sizeof(word), fault);
		if (err)
			return err;
		if (word != stack_word(q, mark, i))
			return load_failed(q, "the control stack is not that of the save area", stack_at(chip, q, i), fault);
	}
	return set_offsets(chip, q, false);
}
