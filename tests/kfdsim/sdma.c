// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interpreter of SDMA packets (SDMA 3 to 6, as far as ROCr, libdrm's users and
 * checkpoint tools emit them). One table row per packet. It is strict: what hardware
 * would leave undefined (reserved bits of a count, an unknown packet, one byte outside
 * of a mapping) ends in -EFAULT and one line in the kernel's log.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>

#include "drm.h"

#define SDMA_VA_MASK 0x0000ffffffffffffULL
#define SDMA_PIECE SZ_1M /* a long packet can be stopped after this many bytes */
#define SDMA_MIN_SLEEP (1 * NSEC_PER_MSEC) /* sleeping for less is not worth it */
#define SDMA_MAX_CREDIT (5 * NSEC_PER_MSEC) /* for having slept too long */

/* Opcodes, bits 7:0 of the first dword; the sub-opcode is in bits 15:8. */
enum {
	OP_NOP = 0,
	OP_COPY = 1,
	OP_WRITE = 2,
	OP_FENCE = 5,
	OP_TRAP = 6,
	OP_POLL_REGMEM = 8,
	OP_ATOMIC = 10,
	OP_CONST_FILL = 11,
	OP_TIMESTAMP = 13,
	OP_SRBM_WRITE = 14,
	OP_GCR = 17,
};

struct packet {
	u8 op, sub_op;
	const char *name;
	unsigned int len; /* dwords */
	/* Optional: the length where it depends on the content. @dw has len dwords. */
	unsigned int (*full_len)(const struct sim_sdma *sdma, const u32 *dw);
	int (*run)(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw);
};

static u32 field(u32 dw, unsigned int shift, unsigned int bits)
{
	return (dw >> shift) & (u32)((1ULL << bits) - 1);
}

static u64 addr64(const u32 *dw)
{
	return (dw[0] | (u64)dw[1] << 32) & SDMA_VA_MASK;
}

/* The line that a person sees when an engine stops. @what ends with the bad address or value. */
#define sdma_err(sdma, packet, fmt, ...)                                                                   \
	pr_err_ratelimited("kfdsim: gpu %#x sdma%u: %s: " fmt "\n", (sdma)->vm->gpu->node->gpu_id,         \
			   (sdma)->engine, (packet)->name, ##__VA_ARGS__)

static int report_fault(struct sim_sdma *sdma, const struct packet *packet, int err, u64 fault_va, u64 va, u64 len)
{
	sdma->fault_va = fault_va;
	WRITE_ONCE(sdma->vm->fault_va, fault_va);
	if (err == -ENOMEM)
		sdma_err(sdma, packet, "no host memory for GPU address %#llx", fault_va);
	else if (err == -ESRCH)
		sdma_err(sdma, packet, "the process whose memory is at GPU address %#llx has ended", fault_va);
	else
		sdma_err(sdma, packet, "page fault at GPU address %#llx (packet covers %#llx + %llu bytes)", fault_va,
			 va, len);
	return -EFAULT;
}

/* ---- bandwidth ---- */

/*
 * Each engine has a time until which it is busy. Work (begun at @start) that is done faster
 * than the engine would have done it sleeps the difference, once that is worth a sleep.
 */
static void throttle(struct sim_sdma *sdma, u64 bytes, u64 start)
{
	struct sim_gpu *gpu = sdma->vm->gpu;
	struct sim_engine *engine = &gpu->engines[sdma->engine % SIM_MAX_ENGINES];
	atomic64_t *busy = &engine->busy_until;
	s64 cost, until, now, old = atomic64_read(busy);
	unsigned long us;

	sdma->bytes_copied += bytes;
	atomic64_add(bytes, &engine->bytes);
	if (!gpu->node->sdma_mbps)
		return;
	cost = div_u64(bytes * 1000, gpu->node->sdma_mbps);
	do
		until = max_t(s64, old, start - SDMA_MAX_CREDIT) + cost;
	while (!atomic64_try_cmpxchg(busy, &old, until));
	for (;;) {
		now = ktime_get_ns();
		if (until < now + SDMA_MIN_SLEEP || (sdma->stop && sdma->stop(sdma->ctx)))
			return;
		us = min_t(s64, div_s64(until - now, NSEC_PER_USEC), 20 * USEC_PER_MSEC);
		usleep_range(us, us + us / 16 + 1);
	}
}

static int stopped(struct sim_sdma *sdma)
{
	return sdma->stop && sdma->stop(sdma->ctx) ? -ECANCELED : 0;
}

/* ---- copies and fills ---- */

static int copy_range(struct sim_sdma *sdma, const struct packet *packet, u64 dst, u64 src, u64 len)
{
	u64 n, done, start, fault_va;
	int ret = 0;

	for (done = 0; done < len; done += n) {
		n = min_t(u64, len - done, SDMA_PIECE);
		start = ktime_get_ns();
		ret = sim_vm_copy(sdma->vm, dst + done, src + done, n, &fault_va);
		if (ret)
			break;
		throttle(sdma, n, start);
		ret = stopped(sdma);
		if (ret)
			return ret;
	}
	if (!ret)
		return 0;
	/* Clients that put the number of bytes where one less belongs; all else of the packet was done. */
	if (ret == -EFAULT && sim_machine.desc.kernel.tolerate_overrun && sdma->count_minus_one &&
	    (fault_va == src + len - 1 || fault_va == dst + len - 1))
		return 0;
	if (fault_va - src < len)
		return report_fault(sdma, packet, ret, fault_va, src, len);
	return report_fault(sdma, packet, ret, fault_va, dst, len);
}

/* The bytes that a count field asks for; 0 with the reason printed when it is too large. */
static u64 count_to_bytes(struct sim_sdma *sdma, const struct packet *packet, u32 count)
{
	u32 mask = sdma->max_copy > SZ_4M ? GENMASK(29, 0) : GENMASK(21, 0);

	if (count & ~mask) {
		sdma_err(sdma, packet, "count %#x does not fit into the field (%#x)", count, mask);
		return 0;
	}
	if (!sdma->count_minus_one && (!count || count > sdma->max_copy)) {
		sdma_err(sdma, packet, "count %u is not between 1 and %u", count, sdma->max_copy);
		return 0;
	}
	return sdma->count_minus_one ? (u64)count + 1 : count;
}

#define COPY_BROADCAST BIT(27)
#define COPY_BACKWARDS BIT(25)

static unsigned int copy_len(const struct sim_sdma *sdma, const u32 *dw)
{
	return dw[0] & COPY_BROADCAST ? 9 : 7;
}

static int run_copy(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u64 len = count_to_bytes(sdma, packet, dw[1]);
	int ret;

	if (!len)
		return -EFAULT;
	if (dw[0] & COPY_BACKWARDS) {
		sdma_err(sdma, packet, "backwards copies are not simulated (header %#x)", dw[0]);
		return -EFAULT;
	}
	ret = copy_range(sdma, packet, addr64(dw + 5), addr64(dw + 3), len);
	if (!ret && (dw[0] & COPY_BROADCAST))
		ret = copy_range(sdma, packet, addr64(dw + 7), addr64(dw + 3), len);
	return ret;
}

/* One side of a sub-window copy. Pitches are in elements. */
struct window {
	u64 base, pitch, slice;
	u32 x, y, z;
};

/* Extents and pitches hold one less than their value since SDMA 4. */
static void parse_window(const struct sim_sdma *sdma, const u32 *dw, struct window *w)
{
	u32 one = sdma->count_minus_one;

	w->base = addr64(dw);
	w->x = field(dw[2], 0, 14);
	w->y = field(dw[2], 16, 14);
	w->z = field(dw[3], 0, 11);
	w->pitch = field(dw[3], 13, 19) + one;
	w->slice = (u64)field(dw[4], 0, 28) + one;
}

static u64 window_row(const struct window *w, unsigned int element_shift, u32 y, u32 z)
{
	return w->base + ((w->x + (w->y + y) * w->pitch + (w->z + z) * w->slice) << element_shift);
}

static int run_copy_window(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u32 one = sdma->count_minus_one, width, height, depth, y, z;
	unsigned int shift = field(dw[0], 29, 3);
	struct window src, dst;
	int ret;

	parse_window(sdma, dw + 1, &src);
	parse_window(sdma, dw + 6, &dst);
	width = field(dw[11], 0, 14) + one;
	height = field(dw[11], 16, 14) + one;
	depth = field(dw[12], 0, 11) + one;
	for (z = 0; z < depth; z++) {
		for (y = 0; y < height; y++) {
			ret = copy_range(sdma, packet, window_row(&dst, shift, y, z), window_row(&src, shift, y, z),
					 (u64)width << shift);
			if (ret)
				return ret;
		}
	}
	return 0;
}

#define FILL_DWORDS 2

static int run_fill(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u64 va = addr64(dw + 1), len = count_to_bytes(sdma, packet, dw[4]), n, done, start, fault_va;
	u32 value = dw[3], size = field(dw[0], 30, 2);
	int ret;

	if (!len)
		return -EFAULT;
	/* A dword fill moves whole dwords: the low bits of the count do not matter. */
	if (size == FILL_DWORDS)
		len = sdma->count_minus_one ? round_down(len - 1, 4) + 4 : round_down(len, 4);
	else if (!size)
		value = (value & 0xff) * 0x01010101;
	else {
		sdma_err(sdma, packet, "unknown fill size %u", size);
		return -EFAULT;
	}
	for (done = 0; done < len; done += n) {
		n = min_t(u64, len - done, SDMA_PIECE);
		start = ktime_get_ns();
		ret = sim_vm_fill(sdma->vm, va + done, value, n, &fault_va);
		if (ret)
			return report_fault(sdma, packet, ret, fault_va, va, len);
		throttle(sdma, n, start);
		ret = stopped(sdma);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- single values ---- */

static int write_va(struct sim_sdma *sdma, const struct packet *packet, u64 va, const void *data, size_t len)
{
	u64 fault_va;
	int ret = sim_vm_write(sdma->vm, va, data, len, &fault_va);

	return ret ? report_fault(sdma, packet, ret, fault_va, va, len) : 0;
}

static unsigned int write_len(const struct sim_sdma *sdma, const u32 *dw)
{
	return 4 + field(dw[3], 0, 20) + sdma->count_minus_one;
}

static int run_write(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	return write_va(sdma, packet, addr64(dw + 1), dw + 4, (write_len(sdma, dw) - 4) * sizeof(u32));
}

static int run_fence(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u64 va = addr64(dw + 1);

	if (va & 3) {
		sdma_err(sdma, packet, "address %#llx is not aligned to 4", va);
		return -EFAULT;
	}
	smp_wmb(); /* whoever sees the fence sees the data */
	return write_va(sdma, packet, va, dw + 3, sizeof(u32));
}

static int run_timestamp(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u64 now = sim_gpu_clock(sdma->vm->gpu);

	return write_va(sdma, packet, addr64(dw + 1) & ~7ULL, &now, sizeof(now));
}

static int run_trap(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	smp_wmb();
	if (sdma->trap)
		sdma->trap(sdma->ctx, field(dw[1], 0, 28));
	return 0;
}

static int run_nothing(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	return 0;
}

static unsigned int nop_len(const struct sim_sdma *sdma, const u32 *dw)
{
	return 1 + field(dw[0], 16, 14);
}

/* ---- polling ---- */

#define POLL_MEMORY BIT(31)
#define POLL_HDP_FLUSH BIT(26)

static bool poll_holds(u32 func, u32 value, u32 reference)
{
	switch (func) {
	case 0:
		return true;
	case 1:
		return value < reference;
	case 2:
		return value <= reference;
	case 3:
		return value == reference;
	case 4:
		return value != reference;
	case 5:
		return value >= reference;
	default:
		return value > reference;
	}
}

static int run_poll(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u32 func = field(dw[0], 28, 3), value;
	u64 va = addr64(dw + 1), fault_va;
	int ret;

	/* There are no registers. What is waited for in them, a flush of host data, is always done. */
	if (!(dw[0] & POLL_MEMORY)) {
		if (!func || (dw[0] & POLL_HDP_FLUSH))
			return 0;
		sdma_err(sdma, packet, "polls register %#llx, which is not simulated", va);
		return -EFAULT;
	}
	if (func > 6 || (va & 3)) {
		sdma_err(sdma, packet, "bad function %u or address %#llx", func, va);
		return -EFAULT;
	}
	ret = sim_vm_read(sdma->vm, va, &value, sizeof(value), &fault_va);
	if (ret)
		return report_fault(sdma, packet, ret, fault_va, va, sizeof(value));
	return poll_holds(func, value & dw[4], dw[3] & dw[4]) ? 0 : -EAGAIN;
}

/* ---- atomics ---- */

/* Operations, bits 31:25; bit 5 of them (0x20) chooses 64 bits. */
enum {
	ATOMIC_SWAP = 0x07,
	ATOMIC_CMPSWAP = 0x08,
	ATOMIC_ADD = 0x0f,
	ATOMIC_SUB = 0x10,
	ATOMIC_AND = 0x15,
	ATOMIC_OR = 0x16,
	ATOMIC_XOR = 0x17,
	ATOMIC_64 = 0x20,
};

struct atomic_args {
	u32 op;
	u64 src, cmp;
};

static u64 atomic_op(void *arg, u64 old)
{
	const struct atomic_args *a = arg;

	switch (a->op) {
	case ATOMIC_SWAP:
		return a->src;
	case ATOMIC_CMPSWAP:
		return old == a->cmp ? a->src : old;
	case ATOMIC_ADD:
		return old + a->src;
	case ATOMIC_SUB:
		return old - a->src;
	case ATOMIC_AND:
		return old & a->src;
	case ATOMIC_OR:
		return old | a->src;
	default:
		return old ^ a->src;
	}
}

static bool atomic_known(u32 op)
{
	return op == ATOMIC_SWAP || op == ATOMIC_CMPSWAP || op == ATOMIC_ADD || op == ATOMIC_SUB ||
	       op == ATOMIC_AND || op == ATOMIC_OR || op == ATOMIC_XOR;
}

#define ATOMIC_LOOP BIT(16) /* a compare-and-swap is tried until the comparison holds */

static int run_atomic(struct sim_sdma *sdma, const struct packet *packet, const u32 *dw)
{
	u32 op = field(dw[0], 25, 7);
	bool wide = op & ATOMIC_64;
	struct atomic_args args = {
		.op = op & ~ATOMIC_64,
		.src = wide ? dw[3] | (u64)dw[4] << 32 : dw[3],
		.cmp = wide ? dw[5] | (u64)dw[6] << 32 : dw[5],
	};
	u64 va = addr64(dw + 1), old, fault_va;
	int ret;

	if (!atomic_known(args.op) || (va & (wide ? 7 : 3))) {
		sdma_err(sdma, packet, "unknown operation %#x or misaligned address %#llx", op, va);
		return -EFAULT;
	}
	ret = sim_vm_atomic(sdma->vm, va, wide, atomic_op, &args, &old, &fault_va);
	if (ret)
		return report_fault(sdma, packet, ret, fault_va, va, wide ? 8 : 4);
	return args.op == ATOMIC_CMPSWAP && (dw[0] & ATOMIC_LOOP) && old != args.cmp ? -EAGAIN : 0;
}

/* ---- the table ---- */

static const struct packet packets[] = {
	{ OP_NOP, 0, "NOP", 1, nop_len, run_nothing },
	{ OP_COPY, 0, "COPY_LINEAR", 7, copy_len, run_copy },
	{ OP_COPY, 4, "COPY_LINEAR_SUB_WINDOW", 13, NULL, run_copy_window },
	{ OP_WRITE, 0, "WRITE_LINEAR", 4, write_len, run_write },
	{ OP_FENCE, 0, "FENCE", 4, NULL, run_fence },
	{ OP_TRAP, 0, "TRAP", 2, NULL, run_trap },
	{ OP_POLL_REGMEM, 0, "POLL_REGMEM", 6, NULL, run_poll },
	{ OP_ATOMIC, 0, "ATOMIC", 8, NULL, run_atomic },
	{ OP_CONST_FILL, 0, "CONSTANT_FILL", 5, NULL, run_fill },
	{ OP_TIMESTAMP, 0, "TIMESTAMP_SET", 3, NULL, run_nothing },
	{ OP_TIMESTAMP, 1, "TIMESTAMP_GET", 3, NULL, run_timestamp },
	{ OP_TIMESTAMP, 2, "TIMESTAMP_GET_GLOBAL", 3, NULL, run_timestamp },
	{ OP_SRBM_WRITE, 0, "SRBM_WRITE", 3, NULL, run_nothing },
	{ OP_GCR, 0, "GCR_REQ", 5, NULL, run_nothing },
	{ OP_GCR, 1, "GCR_REQ", 5, NULL, run_nothing },
};

static const struct packet *find_packet(u32 header)
{
	u32 op = field(header, 0, 8), sub_op = field(header, 8, 8);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(packets); i++)
		if (packets[i].op == op && packets[i].sub_op == sub_op)
			return &packets[i];
	return NULL;
}

int sim_sdma_execute(struct sim_sdma *sdma, const u32 *dw, unsigned int avail)
{
	static const struct packet unknown = { .name = "unknown packet" };
	const struct packet *packet;
	unsigned int len;
	int ret;

	if (!avail)
		return 0;
	ret = sim_engine_check(sdma->vm->gpu);
	if (ret)
		return ret;
	packet = find_packet(dw[0]);
	if (!packet) {
		sdma_err(sdma, &unknown, "op %u, sub-op %u (header %#x)", field(dw[0], 0, 8), field(dw[0], 8, 8),
			 dw[0]);
		return -EFAULT;
	}
	if (avail < packet->len)
		return 0;
	len = packet->full_len ? packet->full_len(sdma, dw) : packet->len;
	if (avail < len)
		return 0;
	ret = packet->run(sdma, packet, dw);
	return ret ? ret : len;
}

/* ---- generations ---- */

/* gfx_target_version is major * 10000 + minor * 100 + stepping. */
static u32 max_copy_of(u64 gfx)
{
	if (gfx < 90000)
		return 0x3fffe0;
	if (gfx == 90002 || gfx == 90012) /* Raven, Renoir: SDMA 4.1 */
		return SZ_1G;
	if (gfx < 90010) /* SDMA 4.0, 4.2 */
		return SZ_4M;
	return gfx >= 100000 && gfx < 100300 ? SZ_4M : SZ_1G; /* SDMA 5.0; 4.4, 5.2, 6 */
}

void sim_sdma_init(struct sim_sdma *sdma, struct sim_vm *vm)
{
	u64 gfx = sim_gpu_prop(vm->gpu, SIM_PROP_gfx_target_version);

	memset(sdma, 0, sizeof(*sdma));
	sdma->vm = vm;
	sdma->count_minus_one = gfx >= 90000;
	sdma->max_copy = max_copy_of(gfx);
}

u64 sim_gpu_clock(struct sim_gpu *gpu)
{
	return div_u64(ktime_get_raw_ns() * (SIM_CLOCK_KHZ / 1000), 1000);
}
