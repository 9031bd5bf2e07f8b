// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler of gfx11 (MES), in place of mes_v11_0.c: what the KFD asks of its firmware. A queue is mapped and
 * unmapped by itself, and what it was doing goes into its MQD. Firmware may do some things in either of two ways, as
 * nobody outside of AMD knows; parameters of the module choose.
 */
#include <linux/moduleparam.h>

#include "chip.h"
#include "amdgpu_mes.h"
#include "v11_structs.h"

static bool asicsim_mes_derives;
module_param(asicsim_mes_derives, bool, 0644);
MODULE_PARM_DESC(asicsim_mes_derives,
		 "MES works out an AQL queue's read index from its write index, instead of counting");

static bool asicsim_mes_base = true;
module_param(asicsim_mes_base, bool, 0644);
MODULE_PARM_DESC(asicsim_mes_base, "MES saves a queue to where its MQD says that it is");

#define PACKET_DWORDS 16
#define RPTR_CARRY    BIT(7) /* of cp_hqd_pq_control: the place is that of an odd round of the ring */

/* What firmware keeps of a queue, or of a process, in memory that the driver has cleared before. */
struct context {
	u64 magic, owner;
};

#define GANG_MAGIC    0x474e4147ULL
#define PROCESS_MAGIC 0x434f5250ULL

/* The context is new, or the owner's; from now on it is the owner's. */
static int claim(struct chip *chip, u64 addr, struct context own, const char *what)
{
	struct context c;
	int err = chip_read(chip, &chip_kernel_vm, addr, &c, sizeof(c), NULL);

	if (!err && (c.magic || c.owner) && memcmp(&c, &own, sizeof(c)))
		err = -EINVAL;
	if (err) {
		pr_err("asicsim: mes: the context of a %s at %#llx is none: error %d\n", what, addr, err);
		return err;
	}
	return chip_write(chip, &chip_kernel_vm, addr, &own, sizeof(own), NULL);
}

/* The write pointer is read by its address in the GART, of a queue that is not mapped, and by that of the process. */
static bool has_one_wptr(struct chip *chip, const struct chip_vm *vm, const struct mes_add_queue_input *in)
{
	unsigned long flags;
	void *gart, *own;

	spin_lock_irqsave(&chip->walk_lock, flags);
	gart = chip_walk(chip, &chip_kernel_vm, in->wptr_mc_addr, AMDGPU_PTE_READABLE);
	own = chip_walk(chip, vm, in->wptr_addr, AMDGPU_PTE_READABLE);
	spin_unlock_irqrestore(&chip->walk_lock, flags);
	if (!gart || gart != own)
		pr_err("asicsim: mes: the write pointer at %#llx of pasid %#x is not what is at %#llx of the GART\n",
		       in->wptr_addr, vm->pasid, in->wptr_mc_addr);
	return gart && gart == own;
}

static struct chip_queue *find_queue(struct chip *chip, u32 doorbell)
{
	struct chip_queue *q;

	list_for_each_entry(q, &chip->queues, link) if (q->doorbell == chip->doorbells + doorbell / 2) return q;
	return NULL;
}

static int add(struct chip *chip, struct mes_add_queue_input *in)
{
	struct chip_hiq *hiq = &chip->hiqs[0];
	struct context gang = { GANG_MAGIC, in->mqd_addr }, process = { PROCESS_MAGIC, in->page_table_base_addr };
	int err;

	hiq->process = (struct chip_vm){
		.vmid = chip_vmid_of(chip, 0, in->process_id),
		.pasid = in->process_id,
		.pd = in->page_table_base_addr,
	};
	hiq->shaders = (struct chip_shaders){ .tba = in->tba_addr, .tma = in->tma_addr };
	if (find_queue(chip, in->doorbell_offset)) {
		pr_err("asicsim: mes: the doorbell %#x has a queue\n", in->doorbell_offset);
		return -EEXIST;
	}
	err = claim(chip, in->process_context_addr, process, "process")
		      ?: claim(chip, in->gang_context_addr, gang, "gang");
	if (err || !has_one_wptr(chip, &hiq->process, in))
		return err ?: -EINVAL;
	guards_check();
	queue_map(chip, hiq, in->mqd_addr, in->wptr_addr, in->doorbell_offset, in->queue_type == AMDGPU_RING_TYPE_SDMA);
	return 0;
}

static int add_queue(struct amdgpu_mes *mes, struct mes_add_queue_input *in)
{
	struct chip *chip = chip_of(mes->adev);
	int err;

	mutex_lock(&chip->queue_lock);
	err = add(chip, in);
	mutex_unlock(&chip->queue_lock);
	chip_kick(mes->adev);
	return err;
}

static int remove(struct chip *chip, const struct mes_remove_queue_input *in)
{
	struct chip_queue *q = find_queue(chip, in->doorbell_offset);
	struct context gang;

	if (!q || chip_read(chip, &chip_kernel_vm, in->gang_context_addr, &gang, sizeof(gang), NULL) ||
	    gang.magic != GANG_MAGIC || gang.owner != q->given_mqd) {
		pr_err("asicsim: mes: no queue has the doorbell %#x and the gang at %#llx\n", in->doorbell_offset,
		       in->gang_context_addr);
		return -ENOENT;
	}
	queue_unmap(chip, q);
	return 0;
}

static int remove_queue(struct amdgpu_mes *mes, struct mes_remove_queue_input *in)
{
	struct chip *chip = chip_of(mes->adev);
	int err;

	mutex_lock(&chip->queue_lock);
	err = remove(chip, in);
	mutex_unlock(&chip->queue_lock);
	return err;
}

/* ---- MQDs ---- */

static u64 pair(u32 lo, u32 hi)
{
	return lo | (u64)hi << 32;
}

static void read_sdma(struct chip_queue *q, const struct v11_sdma_mqd *m)
{
	q->base = pair(m->sdmax_rlcx_rb_base, m->sdmax_rlcx_rb_base_hi) << 8;
	q->size = 4ULL << (m->sdmax_rlcx_rb_cntl >> 1 & 0x1f);
	q->rptr = pair(m->sdmax_rlcx_rb_rptr, m->sdmax_rlcx_rb_rptr_hi);
	q->rptr_addr = pair(m->sdmax_rlcx_rb_rptr_addr_lo, m->sdmax_rlcx_rb_rptr_addr_hi);
	q->engine = m->sdma_engine_id;
	q->id = m->sdma_queue_id;
	if (!(m->sdmax_rlcx_midcmd_cntl & CHIP_IB_BEGUN))
		return;
	q->ib = (struct chip_ib){
		.base = pair(m->sdmax_rlcx_ib_base_lo, m->sdmax_rlcx_ib_base_hi),
		.size = m->sdmax_rlcx_ib_size,
		.at = m->sdmax_rlcx_ib_rptr / sizeof(u32),
	};
}

static void write_sdma(const struct chip_queue *q, struct v11_sdma_mqd *m)
{
	u64 wptr = READ_ONCE(*q->doorbell);

	m->sdmax_rlcx_rb_rptr = lower_32_bits(q->rptr);
	m->sdmax_rlcx_rb_rptr_hi = upper_32_bits(q->rptr);
	m->sdmax_rlcx_rb_wptr = lower_32_bits(wptr);
	m->sdmax_rlcx_rb_wptr_hi = upper_32_bits(wptr);
	m->sdmax_rlcx_ib_base_lo = lower_32_bits(q->ib.base);
	m->sdmax_rlcx_ib_base_hi = upper_32_bits(q->ib.base);
	m->sdmax_rlcx_ib_size = q->ib.size;
	m->sdmax_rlcx_ib_rptr = q->ib.at * sizeof(u32);
	m->sdmax_rlcx_midcmd_cntl = q->ib.dw ? CHIP_IB_BEGUN : 0;
}

static u64 ring_dwords(const struct chip_queue *q)
{
	return q->size / sizeof(u32);
}

static void read_compute(struct chip_queue *q, const struct v11_compute_mqd *m)
{
	q->derives = READ_ONCE(asicsim_mes_derives);
	if (q->derives)
		q->rptr = m->cp_hqd_pq_rptr + (m->cp_hqd_pq_control & RPTR_CARRY ? ring_dwords(q) : 0);
	else
		q->rptr = pair(m->cp_mqd_readindex_lo, m->cp_mqd_readindex_hi) * PACKET_DWORDS;
	if (READ_ONCE(asicsim_mes_base))
		q->mqd_addr = pair(m->cp_mqd_base_addr_lo, m->cp_mqd_base_addr_hi);
}

static void write_compute(const struct chip_queue *q, struct v11_compute_mqd *m)
{
	u64 wptr = (READ_ONCE(*q->doorbell) + 1) * PACKET_DWORDS;

	m->cp_hqd_pq_rptr = q->rptr % ring_dwords(q);
	m->cp_hqd_pq_control &= ~RPTR_CARRY;
	m->cp_hqd_pq_control |= q->rptr & ring_dwords(q) ? RPTR_CARRY : 0;
	m->cp_hqd_pq_wptr_lo = lower_32_bits(wptr);
	m->cp_hqd_pq_wptr_hi = upper_32_bits(wptr);
	m->cp_mqd_readindex_lo = q->derives ? 0 : lower_32_bits(q->rptr / PACKET_DWORDS);
	m->cp_mqd_readindex_hi = q->derives ? 0 : upper_32_bits(q->rptr / PACKET_DWORDS);
}

void mes_read_mqd(struct chip_queue *q, const void *mqd)
{
	if (q->sdma)
		read_sdma(q, mqd);
	else
		read_compute(q, mqd);
}

void mes_write_mqd(const struct chip_queue *q, void *mqd)
{
	if (q->sdma)
		write_sdma(q, mqd);
	else
		write_compute(q, mqd);
}

/* What is known is the place and whether the round is an odd one: the packets before the write index, a ring at most.
 */
void mes_derive(struct chip_queue *q, u64 end)
{
	u64 left;

	if (!q->derives)
		return;
	left = (end * PACKET_DWORDS - q->rptr) % (2 * ring_dwords(q));
	if (left > ring_dwords(q))
		left -= ring_dwords(q);
	q->rptr = end * PACKET_DWORDS - left;
}

/* ---- what the driver asks besides ---- */

static int suspend_gang(struct amdgpu_mes *mes, struct mes_suspend_gang_input *in)
{
	return 0;
}

static int resume_gang(struct amdgpu_mes *mes, struct mes_resume_gang_input *in)
{
	return 0;
}

static int misc_op(struct amdgpu_mes *mes, struct mes_misc_op_input *in)
{
	return 0;
}

static const struct amdgpu_mes_funcs mes_funcs = {
	.add_hw_queue = add_queue,
	.remove_hw_queue = remove_queue,
	.suspend_gang = suspend_gang,
	.resume_gang = resume_gang,
	.misc_op = misc_op,
};

void mes_init(struct amdgpu_device *adev)
{
	adev->enable_mes = true;
	adev->mes.adev = adev;
	mutex_init(&adev->mes.mutex_hidden);
	adev->mes.funcs = &mes_funcs;
	adev->mes.sched_version = 2 << AMDGPU_MES_API_VERSION_SHIFT | 0x50;
}
