// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets of SDMA 4 (vega10_sdma_pkt_open.h names their fields): those that the driver, libdrm's tests and ROCm's
 * runtime submit. Knows memory and interrupts only; rings and queues call it.
 */
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/random.h>

#include "chip.h"
#include "gc/gc_9_0_sh_mask.h"
#include "vega10_sdma_pkt_open.h"

#define TRAP_SOURCE	 224
#define TRAP_SOURCE_GFX11 49 /* for the KFD: the driver's own rings are those of an MI100 */
/* The driver's SDMA interrupt for rings of the kernel and for queues of user space. */
#define TRAP_RING_KERNEL 0
#define TRAP_RING_USER	 2
#define NO_FAULT	 U64_MAX
/* IBs are read in pieces of so many dwords. */
#define IB_DWORDS	 8
#define COPY_DWORDS	 7
#define COPIES_AT_ONCE	 16 /* may be done in any order */
#define SDMA_OP_GCR	 17 /* of SDMA 5 and later: flushes caches */

static u64 addr64(const u32 *dw)
{
	return dw[0] | (u64)dw[1] << 32;
}

static u32 sub_op(const u32 *dw)
{
	return dw[0] >> 8 & 0xff;
}

/* Bits above a chip's count are reserved. */
static bool has_count(struct sdma_run *run, u32 count)
{
	return !(count & ~chip_model_of(run->chip->adev)->sdma_count);
}

static int write_va(struct sdma_run *run, u64 va, const void *from, size_t len)
{
	return chip_write(run->chip, &run->vm, va, from, len, &run->fault);
}

static int read_va(struct sdma_run *run, u64 va, void *to, size_t len)
{
	return chip_read(run->chip, &run->vm, va, to, len, &run->fault);
}

static int run_nothing(struct sdma_run *run, const u32 *dw)
{
	return 0;
}

static int run_cache(struct sdma_run *run, const u32 *dw)
{
	return run->chip->adev->enable_mes ? 0 : -EINVAL;
}

/* The engine is still at what its ring has copied. */
static bool is_copying(struct sdma_run *run)
{
	return run->ring && ktime_get_ns() < run->chip->rings[run->engine].busy_until;
}

static void count_copy(struct sdma_run *run, u64 bytes)
{
	struct chip_ring *r = &run->chip->rings[run->engine];
	u32 mbps = READ_ONCE(run->chip->mbps);

	if (!run->ring)
		return;
	WRITE_ONCE(r->copied, r->copied + bytes);
	if (mbps)
		r->busy_until = max_t(u64, r->busy_until, ktime_get_ns()) + bytes * 1000 / mbps;
}

static int run_copy(struct sdma_run *run, const u32 *dw)
{
	if (sub_op(dw) != SDMA_SUBOP_COPY_LINEAR || !has_count(run, dw[1]))
		return -EINVAL;
	count_copy(run, (u64)dw[1] + 1);
	return chip_copy(run->chip, &run->vm, addr64(dw + 5), addr64(dw + 3), (u64)dw[1] + 1, &run->fault);
}

static unsigned int write_length(const u32 *dw)
{
	return 4 + (dw[3] & 0xfffff) + 1;
}

static int run_write(struct sdma_run *run, const u32 *dw)
{
	return write_va(run, addr64(dw + 1), dw + 4, (write_length(dw) - 4) * sizeof(u32));
}

static int run_fence(struct sdma_run *run, const u32 *dw)
{
	/* Whoever sees the fence sees what was written before it. */
	smp_wmb();
	return write_va(run, addr64(dw + 1), dw + 3, sizeof(u32));
}

static int run_trap(struct sdma_run *run, const u32 *dw)
{
	u32 data[4] = { dw[1] & 0xfffffff };

	smp_wmb();
	if (!run->ring && run->chip->adev->enable_mes)
		chip_interrupt(run->chip, SOC21_IH_CLIENTID_GFX, TRAP_SOURCE_GFX11, 0, &run->vm, data);
	else
		chip_interrupt(run->chip, chip_model_of(run->chip->adev)->sdma_client(run->engine), TRAP_SOURCE,
			       run->ring ? TRAP_RING_KERNEL : TRAP_RING_USER, &run->vm, data);
	return 0;
}

static bool poll_is_met(u32 function, u32 value, u32 want)
{
	switch (function) {
	case 0:
		return true;
	case 1:
		return value < want;
	case 2:
		return value <= want;
	case 3:
		return value == want;
	case 4:
		return value != want;
	case 5:
		return value >= want;
	default:
		return value > want;
	}
}

static int run_poll(struct sdma_run *run, const u32 *dw)
{
	u32 value;
	int err;

	if (!(dw[0] & BIT(31)))
		return 0; /* a register: what is waited for there, the chip does at once */
	err = read_va(run, addr64(dw + 1), &value, sizeof(value));
	if (err)
		return err;
	return poll_is_met(dw[0] >> 28 & 7, value & dw[4], dw[3] & dw[4]) ? 0 : -EAGAIN;
}

static int run_atomic(struct sdma_run *run, const u32 *dw)
{
	u32 op = dw[0] >> 25;
	bool wide = op & 0x20;
	u64 src = wide ? addr64(dw + 3) : dw[3], compare = wide ? addr64(dw + 5) : dw[5], old = 0;
	int err = read_va(run, addr64(dw + 1), &old, wide ? 8 : 4);

	if (err)
		return err;
	switch (op & ~0x20) {
	case 0x07:
		old = src;
		break;
	case 0x08:
		if (old != compare)
			return dw[0] & BIT(16) ? -EAGAIN : 0;
		old = src;
		break;
	case 0x0f:
		old += src;
		break;
	case 0x10:
		old -= src;
		break;
	case 0x15:
		old &= src;
		break;
	case 0x16:
		old |= src;
		break;
	case 0x17:
		old ^= src;
		break;
	default:
		return -EINVAL;
	}
	return write_va(run, addr64(dw + 1), &old, wide ? 8 : 4);
}

static int run_fill(struct sdma_run *run, const u32 *dw)
{
	u64 va = addr64(dw + 1), len = (u64)dw[4] + 1, n;
	u32 value = dw[3];
	int err = 0;

	if (!has_count(run, dw[4]))
		return -EINVAL;
	if (dw[0] >> 30 == 2)
		len = round_down(len - 1, 4) + 4;
	else
		value = (value & 0xff) * 0x01010101;
	memset32(run->chip->fill, value, ARRAY_SIZE(run->chip->fill));
	for (; len && !err; len -= n, va += n) {
		n = min_t(u64, len, PAGE_SIZE - (va & ~PAGE_MASK));
		err = write_va(run, va, run->chip->fill, n);
	}
	return err;
}

/* Entries are made in the chip's scratch, as many as fit: page tables of large buffers have hundreds of thousands. */
static int run_ptepde(struct sdma_run *run, const u32 *dw)
{
	u64 pe = addr64(dw + 1), flags = addr64(dw + 3), value = addr64(dw + 5), *entries = (u64 *)run->chip->fill;
	u32 increment = dw[7], left = dw[9] + 1, n;
	int err = 0;

	if (sub_op(dw) != SDMA_SUBOP_PTEPDE_GEN)
		return -EINVAL;
	for (; left && !err; left -= n, pe += n * sizeof(u64)) {
		n = min_t(u32, left, sizeof(run->chip->fill) / sizeof(u64));
		for (u32 i = 0; i < n; i++, value += increment)
			entries[i] = value | flags;
		err = write_va(run, pe, entries, n * sizeof(u64));
	}
	return err;
}

static int run_timestamp(struct sdma_run *run, const u32 *dw)
{
	u64 now = ktime_get_ns() / 10;

	if (sub_op(dw) == SDMA_SUBOP_TIMESTAMP_SET)
		return 0;
	return write_va(run, addr64(dw + 1) & ~7ULL, &now, sizeof(now));
}

static int run_register(struct sdma_run *run, const u32 *dw)
{
	struct amdgpu_device *adev = run->chip->adev;

	if (run->ring && (u64)dw[1] * 4 < adev->rmmio_size)
		writel(dw[2], adev->rmmio + (u64)dw[1] * 4);
	return 0;
}

/* The page directory that the ring's hub has for @vmid, by its registers. */
static u64 hub_pd(struct chip *chip, struct amdgpu_ring *ring, u32 vmid)
{
	struct amdgpu_device *adev = chip->adev;
	struct amdgpu_vmhub *hub = &adev->vmhub[ring->vm_hub];
	u64 lo = hub->ctx0_ptb_addr_lo32 + hub->ctx_addr_distance * vmid;
	u64 hi = hub->ctx0_ptb_addr_hi32 + hub->ctx_addr_distance * vmid;

	return readl(adev->rmmio + lo * 4) | (u64)readl(adev->rmmio + hi * 4) << 32;
}

/* Whether an access of what is not mapped goes to the default page; all hubs have this bit at the same place. */
static bool hub_has_default_page(struct chip *chip, struct amdgpu_ring *ring, u32 vmid)
{
	struct amdgpu_vmhub *hub = &chip->adev->vmhub[ring->vm_hub];

	return readl(chip->adev->rmmio + (hub->vm_context0_cntl + (u64)hub->ctx_distance * vmid) * 4) &
	       VM_CONTEXT1_CNTL__VALID_PROTECTION_FAULT_ENABLE_DEFAULT_MASK;
}

void chip_ib_drop(struct chip_ib *ib)
{
	kvfree(ib->dw);
	ib->dw = NULL;
}

/* The driver hears once of a packet that met the default page. */
static void report_default_page(struct sdma_run *run, const struct chip_vm *vm)
{
	if (vm->default_page && run->fault != NO_FAULT)
		chip_vm_fault(run->chip, vm, run->fault);
}

int sdma_ib_read(struct sdma_run *run)
{
	struct chip_ib *ib = run->ib;
	int err;

	ib->dw = kvmalloc_array(ib->size + 1, sizeof(u32), GFP_KERNEL);
	if (!ib->dw)
		return -ENOMEM;
	run->fault = NO_FAULT;
	err = chip_read(run->chip, &ib->vm, ib->base, ib->dw, ib->size * sizeof(u32), &run->fault);
	if (err)
		chip_ib_drop(ib);
	else
		report_default_page(run, &ib->vm);
	return err;
}

/* Begins an IB; sdma_ib_continue() runs it. */
static int run_indirect(struct sdma_run *run, const u32 *dw)
{
	u32 vmid = dw[0] >> 16 & 0xf, size = dw[3] & 0xfffff;
	struct chip_vm vm = run->vm;

	if (!run->ib || run->ib->dw || size % IB_DWORDS)
		return -EINVAL;
	if (run->ring && vmid)
		vm = (struct chip_vm){
			.vmid = vmid,
			.pd = hub_pd(run->chip, run->ring, vmid),
			.ih_node = run->vm.ih_node,
			.default_page = hub_has_default_page(run->chip, run->ring, vmid),
		};
	*run->ib = (struct chip_ib){ .base = addr64(dw + 1) & ~0x1fULL, .size = size, .vm = vm };
	return sdma_ib_read(run);
}

/*
 * Silicon overlaps the copies of an IB until something waits for them: any of those that follow each other may be done
 * first. The one that is drawn changes places with that at ib->at.
 */
static void draw_copy(struct chip_ib *ib)
{
	u32 *first = ib->dw + ib->at, *drawn, nr = 0;

	while (nr < COPIES_AT_ONCE && ib->at + (nr + 1) * COPY_DWORDS <= ib->size &&
	       (first[nr * COPY_DWORDS] & 0xff) == SDMA_OP_COPY)
		nr++;
	if (!nr)
		return;
	drawn = first + get_random_u32_below(nr) * COPY_DWORDS;
	for (u32 i = 0; i < COPY_DWORDS; i++)
		swap(first[i], drawn[i]);
}

int sdma_ib_continue(struct sdma_run *run)
{
	struct chip_ib *ib = run->ib;
	struct sdma_run inner = *run;
	int n = 0;

	if (!ib->dw)
		return 0;
	inner.vm = ib->vm;
	inner.ib = NULL;
	while (ib->at < ib->size) {
		draw_copy(ib);
		inner.fault = NO_FAULT;
		n = sdma_packet(&inner, ib->dw + ib->at, ib->size - ib->at);
		if (n == -EAGAIN)
			return n;
		if (n <= 0) {
			n = n ?: -EINVAL;
			run->fault = inner.fault;
			pr_err("asicsim: sdma%u: vmid %u: IB: packet %#x at dword %u: error %d at %#llx\n", run->engine,
			       ib->vm.vmid, ib->dw[ib->at], ib->at, n, inner.fault);
			break;
		}
		report_default_page(&inner, &ib->vm);
		ib->at += n;
		n = 0;
	}
	chip_ib_drop(ib);
	return n;
}

/* Length in dwords, 0: as the packet says. */
static const struct {
	unsigned int length;
	int (*run)(struct sdma_run *run, const u32 *dw);
} packets[] = {
	[SDMA_OP_NOP] = { 0, run_nothing },	    [SDMA_OP_COPY] = { COPY_DWORDS, run_copy },
	[SDMA_OP_WRITE] = { 0, run_write },	    [SDMA_OP_INDIRECT] = { 6, run_indirect },
	[SDMA_OP_FENCE] = { 4, run_fence },	    [SDMA_OP_TRAP] = { 2, run_trap },
	[SDMA_OP_POLL_REGMEM] = { 6, run_poll },    [SDMA_OP_ATOMIC] = { 8, run_atomic },
	[SDMA_OP_CONST_FILL] = { 5, run_fill },	    [SDMA_OP_PTEPDE] = { 10, run_ptepde },
	[SDMA_OP_TIMESTAMP] = { 3, run_timestamp }, [SDMA_OP_SRBM_WRITE] = { 3, run_register },
	[SDMA_OP_GCR] = { 5, run_cache },
};

int sdma_packet(struct sdma_run *run, const u32 *dw, unsigned int avail)
{
	u32 op = dw[0] & 0xff;
	unsigned int length;
	int err;

	if (op >= ARRAY_SIZE(packets) || !packets[op].run)
		return -EINVAL;
	length = packets[op].length;
	/* What a NOP skips need not be there to be looked at. */
	if (op == SDMA_OP_NOP)
		return 1 + (dw[0] >> 16 & 0x3fff);
	if (op == SDMA_OP_WRITE)
		length = avail < 4 ? 4 : write_length(dw);
	if (avail < length)
		return 0;
	if (is_copying(run))
		return -EAGAIN;
	err = packets[op].run(run, dw);
	return err ?: length;
}
