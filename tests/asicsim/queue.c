// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of user space that the scheduler has mapped, and SDMA queues' packets. What a queue is comes from its MQD, and
 * goes back there when it is unmapped.
 */
#include "chip.h"
#include "v9_structs.h"

/* Packets of one queue before it is the next one's turn. */
#define BUDGET	       64
#define LONGEST_PACKET (4 + (1 << 20)) /* dwords: a write of all that its count can say */

int queue_read(struct chip *chip, struct chip_queue *q, u64 at, u32 *dw, u64 count, u64 *fault)
{
	u64 n, offset;
	int err = 0;

	for (; count && !err; count -= n, at += n * 4, dw += n) {
		offset = at & (q->size - 1);
		n = min(count, (q->size - offset) / 4);
		err = chip_read(chip, &q->vm, q->base + offset, dw, n * 4, fault);
	}
	return err;
}

void queue_fault(struct chip *chip, struct chip_queue *q, int err, u32 packet, u64 fault)
{
	pr_err("asicsim: %s queue %u.%u of pasid %#x: packet %#x at %#llx: error %d at %#llx\n",
	       q->sdma ? "sdma" : "compute", q->engine, q->id, q->vm.pasid, packet, q->rptr, err, fault);
	q->stopped = true;
	if (err == -EFAULT)
		chip_vm_fault(chip, &q->vm, fault);
}

/* A packet of which a first look at the ring saw only a part. */
static int run_long_packet(struct sdma_run *run, struct chip_queue *q, u64 avail)
{
	u32 *dw;
	int n;

	avail = min_t(u64, avail, LONGEST_PACKET);
	dw = kvmalloc_array(avail, sizeof(u32), GFP_KERNEL);
	if (!dw)
		return -EAGAIN;
	n = queue_read(run->chip, q, q->rptr, dw, avail, &run->fault) ?: sdma_packet(run, dw, avail);
	kvfree(dw);
	return n ?: -EAGAIN;
}

/* Runs what comes next, an IB that has begun or a packet: its length, 0: no packet, or an error. */
static int queue_step(struct sdma_run *run, struct chip_queue *q, u64 wptr, u32 *packet)
{
	u64 avail = wptr > q->rptr ? (wptr - q->rptr) / 4 : 0;
	u32 dw[16], n_first = min_t(u64, avail, ARRAY_SIZE(dw));
	int n = sdma_ib_continue(run);

	*packet = 0;
	if (n || !avail)
		return n;
	n = queue_read(run->chip, q, q->rptr, dw, n_first, &run->fault);
	if (n)
		return n;
	*packet = dw[0];
	n = sdma_packet(run, dw, n_first);
	if (n || n_first == avail)
		return n ?: -EAGAIN;
	return run_long_packet(run, q, avail);
}

bool queue_run(struct chip *chip, struct chip_queue *q)
{
	struct sdma_run run = { .chip = chip, .vm = q->vm, .engine = q->engine, .ib = &q->ib };
	u64 wptr = READ_ONCE(*q->doorbell);
	bool any = false;
	u32 packet;
	int n;

	for (int budget = BUDGET; budget && !q->stopped; budget--) {
		n = queue_step(&run, q, wptr, &packet);
		if (n == -EAGAIN || !n)
			break;
		if (n < 0) {
			queue_fault(chip, q, n, packet, run.fault);
			break;
		}
		q->rptr += n * 4;
		any = true;
		chip_write(chip, &q->vm, q->rptr_addr, &q->rptr, sizeof(q->rptr), NULL);
	}
	return any;
}

/* ---- MQDs ---- */

static u64 pair(u32 lo, u32 hi)
{
	return lo | (u64)hi << 32;
}

static void read_sdma_mqd(struct chip_queue *q, const struct v9_sdma_mqd *m)
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

/* An IB that was begun goes on from what the MQD says, and from nothing else: it waits in front of a packet. */
static void write_sdma_mqd(const struct chip_queue *q, struct v9_sdma_mqd *m)
{
	m->sdmax_rlcx_rb_rptr = lower_32_bits(q->rptr);
	m->sdmax_rlcx_rb_rptr_hi = upper_32_bits(q->rptr);
	m->sdmax_rlcx_ib_base_lo = lower_32_bits(q->ib.base);
	m->sdmax_rlcx_ib_base_hi = upper_32_bits(q->ib.base);
	m->sdmax_rlcx_ib_size = q->ib.size;
	m->sdmax_rlcx_ib_rptr = q->ib.at * sizeof(u32);
	m->sdmax_rlcx_midcmd_cntl = q->ib.dw ? CHIP_IB_BEGUN : 0;
}

void queue_read_compute_mqd(struct chip_queue *q, const void *mqd)
{
	const struct v9_mqd *m = mqd;

	q->base = pair(m->cp_hqd_pq_base_lo, m->cp_hqd_pq_base_hi) << 8;
	q->size = 8ULL << (m->cp_hqd_pq_control & 0x3f);
	q->rptr = m->cp_hqd_pq_rptr;
	q->rptr_addr = pair(m->cp_hqd_pq_rptr_report_addr_lo, m->cp_hqd_pq_rptr_report_addr_hi);
	q->aql = m->cp_hqd_aql_control & 1;
	q->mqd_stride = m->cp_mqd_stride_size;
	q->restart[0] = m->compute_restart_x;
	q->restart[1] = m->compute_restart_y;
	q->restart[2] = m->compute_restart_z;
	wave_read_mqd(q, mqd);
}

union mqd {
	struct v9_mqd compute;
	struct v9_sdma_mqd sdma;
};

static int read_mqd(struct chip *chip, struct chip_queue *q)
{
	union mqd *m = kzalloc(sizeof(*m), GFP_KERNEL);
	bool mes = chip_model_of(chip->adev)->mes;
	int err;

	if (!m)
		return -ENOMEM;
	err = chip_read(chip, &chip_kernel_vm, q->mqd_addr, m, q->sdma ? sizeof(m->sdma) : sizeof(m->compute), NULL);
	if (!err && !q->sdma)
		queue_read_compute_mqd(q, &m->compute);
	else if (!err && !mes)
		read_sdma_mqd(q, &m->sdma);
	if (!err && mes)
		mes_read_mqd(q, m);
	kfree(m);
	return err;
}

static void write_mqd(struct chip *chip, struct chip_queue *q)
{
	union mqd *m = kzalloc(sizeof(*m), GFP_KERNEL);
	size_t size = q->sdma ? sizeof(m->sdma) : sizeof(m->compute);

	if (!m || chip_read(chip, &chip_kernel_vm, q->mqd_addr, m, size, NULL)) {
		pr_err("asicsim: the MQD at %#llx cannot be written\n", q->mqd_addr);
		kfree(m);
		return;
	}
	if (chip_model_of(chip->adev)->mes) {
		mes_write_mqd(q, m);
	} else if (q->sdma) {
		write_sdma_mqd(q, &m->sdma);
	} else {
		m->compute.cp_hqd_pq_rptr = lower_32_bits(q->rptr);
		m->compute.compute_restart_x = q->restart[0];
		m->compute.compute_restart_y = q->restart[1];
		m->compute.compute_restart_z = q->restart[2];
	}
	chip_write(chip, &chip_kernel_vm, q->mqd_addr, m, size, NULL);
	kfree(m);
}

/*
 * The doorbell takes up what was written while the queue was away; an AQL queue's holds the last packet's number. A
 * process writes its pointer and then rings: what it rings between the reading of the pointer and the end is later, and
 * stays.
 */
static void ring_doorbell(struct chip *chip, struct chip_queue *q, u64 wptr_addr)
{
	u64 none = q->sdma ? q->rptr : q->rptr / 16 - 1, wptr;

	WRITE_ONCE(*q->doorbell, none);
	smp_mb();
	if (!chip_read(chip, &q->vm, wptr_addr, &wptr, sizeof(wptr), NULL))
		cmpxchg(q->doorbell, none, q->sdma ? wptr : wptr - 1);
}

/* An XCC whose MQD nobody has written does not take part, and the others wait for it. */
static int check_other_mqds(struct chip *chip, struct chip_queue *q)
{
	u32 base[2];
	int err = 0;

	for (unsigned int i = 1; i < q->nr_xccs && !err; i++) {
		err = chip_read(chip, &chip_kernel_vm,
				q->mqd_addr + i * q->mqd_stride + offsetof(struct v9_mqd, cp_hqd_pq_base_lo), base,
				sizeof(base), NULL);
		if (!err && pair(base[0], base[1]) << 8 != q->base) {
			pr_err("asicsim: compute queue of pasid %#x: XCC %u has no MQD: the queue hangs\n", q->vm.pasid, i);
			q->stopped = true;
			break;
		}
	}
	return err;
}

/* Where in the chip the queue runs. */
static int place(struct chip *chip, struct chip_queue *q)
{
	struct sdma_run run = { .chip = chip, .ib = &q->ib };
	unsigned int xcc = q->hiq->xcc;

	if (q->sdma) {
		q->engine = chip_engine_of_partition(chip, xcc, q->engine);
		q->vm.ih_node = chip_node_of_engine(chip, q->engine);
		q->ib.vm = q->vm;
		return q->ib.size ? sdma_ib_read(&run) : 0;
	}
	q->nr_xccs = chip_xccs_of_partition(chip);
	q->vm.ih_node = chip_node_of_xcc(chip, xcc);
	return check_other_mqds(chip, q);
}

void queue_map(struct chip *chip, struct chip_hiq *hiq, u64 mqd_addr, u64 wptr_addr, u32 doorbell, bool sdma)
{
	struct chip_queue *q = kzalloc(sizeof(*q), GFP_KERNEL);
	int err = -ENOMEM;

	if (q) {
		q->mqd_addr = q->given_mqd = mqd_addr;
		q->hiq = hiq;
		q->vm = hiq->process;
		q->shaders = hiq->shaders;
		q->sdma = sdma;
		q->doorbell = chip->doorbells + doorbell / 2;
		err = read_mqd(chip, q) ?: place(chip, q);
	}
	if (err) {
		pr_err("asicsim: no queue from the MQD at %#llx: error %d\n", mqd_addr, err);
		kfree(q);
		return;
	}
	ring_doorbell(chip, q, wptr_addr);
	list_add_tail(&q->link, &chip->queues);
}

void queue_unmap(struct chip *chip, struct chip_queue *q)
{
	if (q->code)
		code_save(chip, q);
	else
		wave_save(chip, q);
	write_mqd(chip, q);
	list_del(&q->link);
	chip_ib_drop(&q->ib);
	kfree(q);
}
