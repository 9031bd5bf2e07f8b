// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hardware scheduler: packets of its queue (HIQ), by which the KFD says which queues of which processes are mapped.
 * All queues of a run list are mapped at once; the chip has room for as many as there are.
 */
#include "chip.h"
#include "kfd_pm4_headers_ai.h"
#include "kfd_pm4_opcodes.h"

#define PACKET_TYPE_3	3
#define ENGINE_SDMA	2 /* engine_sel of MAP_QUEUES from here on */
#define SELECT_BY_PASID 1 /* queue_sel of UNMAP_QUEUES */

static u32 run_packets(struct chip *chip, struct chip_hiq *hiq, const u32 *dw, u32 count);

/* Only reports name a VMID, always together with the PASID: two processes may share one. */
static void map_process(struct chip *chip, struct chip_hiq *hiq, const struct pm4_mes_map_process *packet)
{
	u32 pasid = packet->bitfields2.pasid;

	hiq->process = (struct chip_vm){
		.vmid = chip_vmid_of(chip, hiq->xcc, pasid),
		.pasid = pasid,
		.pd = packet->vm_context_page_table_base_addr_lo32 | (u64)packet->vm_context_page_table_base_addr_hi32
									     << 32,
	};
}

/* The address of a trap handler as registers have it: without the lowest byte, and with a bit that switches it on. */
static u64 trap_address(u32 lo, u32 hi)
{
	return (lo | (u64)(hi & 0xff) << 32) << 8;
}

static void map_shaders(struct chip_hiq *hiq, const struct pm4_mes_map_process *packet)
{
	hiq->shaders = (struct chip_shaders){
		.tba = trap_address(packet->sq_shader_tba_lo, packet->sq_shader_tba_hi),
		.tma = trap_address(packet->sq_shader_tma_lo, packet->sq_shader_tma_hi),
		.sh_mem_bases = packet->sh_mem_bases,
	};
}

static void map_queues(struct chip *chip, struct chip_hiq *hiq, const struct pm4_mes_map_queues *packet)
{
	bool sdma = packet->bitfields2.engine_sel >= ENGINE_SDMA || packet->bitfields2.extended_engine_sel;

	queue_map(chip, hiq, packet->mqd_addr_lo | (u64)packet->mqd_addr_hi << 32,
		  packet->wptr_addr_lo | (u64)packet->wptr_addr_hi << 32, packet->bitfields3.doorbell_offset, sdma);
}

static void unmap_all(struct chip *chip, struct chip_hiq *hiq)
{
	struct chip_queue *q, *next;

	list_for_each_entry_safe (q, next, &chip->queues, link)
		if (q->hiq == hiq)
			queue_unmap(chip, q);
}

static void unmap_queues(struct chip *chip, struct chip_hiq *hiq, const struct pm4_mes_unmap_queues *packet)
{
	bool all = packet->bitfields2.queue_sel != SELECT_BY_PASID;
	struct chip_queue *q, *next;

	list_for_each_entry_safe (q, next, &chip->queues, link)
		if (q->hiq == hiq && (all || q->vm.pasid == packet->bitfields3a.pasid))
			queue_unmap(chip, q);
}

/* A new list replaces the old one. A list that does not fit ends with a chained packet that names the list itself. */
static void run_list(struct chip *chip, struct chip_hiq *hiq, const struct pm4_mes_runlist *packet)
{
	u32 size = packet->bitfields4.ib_size, *ib;
	u64 base = (packet->ordinal2 & ~3ULL) | (u64)packet->ib_base_hi << 32;

	if (packet->bitfields4.chain)
		return;
	guards_check();
	unmap_all(chip, hiq);
	if (!packet->bitfields4.valid)
		return;
	ib = kvmalloc_array(size + 1, sizeof(u32), GFP_KERNEL);
	if (!ib)
		return;
	if (chip_read(chip, &chip_kernel_vm, base, ib, size * sizeof(u32), NULL))
		pr_err("asicsim: no run list at %#llx\n", base);
	else
		run_packets(chip, hiq, ib, size);
	kvfree(ib);
}

static void query_status(struct chip *chip, const struct pm4_mes_query_status *packet)
{
	u64 data = packet->data_lo | (u64)packet->data_hi << 32;

	chip_write(chip, &chip_kernel_vm, packet->addr_lo | (u64)packet->addr_hi << 32, &data, sizeof(data), NULL);
}

static void run_packet(struct chip *chip, struct chip_hiq *hiq, const u32 *packet)
{
	switch (packet[0] >> 8 & 0xff) {
	case IT_NOP:
	case IT_SET_RESOURCES:
	case IT_WRITE_DATA:
		break;
	case IT_MAP_PROCESS:
		map_process(chip, hiq, (const void *)packet);
		map_shaders(hiq, (const void *)packet);
		break;
	case IT_MAP_QUEUES:
		map_queues(chip, hiq, (const void *)packet);
		break;
	case IT_RUN_LIST:
		run_list(chip, hiq, (const void *)packet);
		break;
	case IT_UNMAP_QUEUES:
		unmap_queues(chip, hiq, (const void *)packet);
		break;
	case IT_QUERY_STATUS:
		query_status(chip, (const void *)packet);
		break;
	default:
		pr_err_ratelimited("asicsim: scheduler: packet %#x is unknown\n", packet[0]);
	}
}

/* How many of @count dwords were packets that are complete; those are done. */
static u32 run_packets(struct chip *chip, struct chip_hiq *hiq, const u32 *dw, u32 count)
{
	u32 at = 0, length;

	while (at < count) {
		length = (dw[at] >> 16 & 0x3fff) + 2;
		if (length > 0x4000)
			length = 1; /* a NOP of one dword */
		if (dw[at] >> 30 != PACKET_TYPE_3 || at + length > count)
			break;
		run_packet(chip, hiq, dw + at);
		at += length;
	}
	return at;
}

static bool hiq_run(struct chip *chip, struct chip_hiq *hiq)
{
	struct chip_queue *q = &hiq->q;
	u64 wptr, count, dwords;
	u32 *dw, rptr;

	if (!hiq->mapped)
		return false;
	wptr = READ_ONCE(*q->doorbell);
	if (wptr <= q->rptr)
		return false;
	dwords = q->size / sizeof(u32);
	count = min_t(u64, wptr - q->rptr, dwords - q->rptr % dwords);
	dw = kvmalloc_array(count, sizeof(u32), GFP_KERNEL);
	if (!dw)
		return false;
	if (queue_read(chip, q, q->rptr * sizeof(u32), dw, count, NULL)) {
		pr_err("asicsim: no HIQ at %#llx\n", q->base);
		q->rptr += count;
	} else {
		q->rptr += run_packets(chip, hiq, dw, count) ?: 1;
	}
	kvfree(dw);
	rptr = q->rptr % dwords;
	chip_write(chip, &chip_kernel_vm, q->rptr_addr, &rptr, sizeof(rptr), NULL);
	return true;
}

bool scheduler_run(struct chip *chip)
{
	bool any = false;

	for (unsigned int i = 0; i < CHIP_XCCS; i++)
		any |= hiq_run(chip, &chip->hiqs[i]);
	return any;
}

int scheduler_map(struct chip *chip, unsigned int xcc, const void *mqd, u32 doorbell)
{
	struct chip_hiq *hiq = &chip->hiqs[xcc];

	if (xcc % chip_xccs_of_partition(chip))
		return 0;
	mutex_lock(&chip->queue_lock);
	hiq->xcc = xcc;
	hiq->q = (struct chip_queue){ .doorbell = chip->doorbells + doorbell / 2 };
	queue_read_compute_mqd(&hiq->q, mqd);
	hiq->q.rptr = 0;
	WRITE_ONCE(*hiq->q.doorbell, 0);
	hiq->mapped = true;
	mutex_unlock(&chip->queue_lock);
	return 0;
}

void scheduler_unmap(struct chip *chip, unsigned int xcc)
{
	mutex_lock(&chip->queue_lock);
	chip->hiqs[xcc].mapped = false;
	unmap_all(chip, &chip->hiqs[xcc]);
	mutex_unlock(&chip->queue_lock);
}
