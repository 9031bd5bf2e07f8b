// SPDX-License-Identifier: GPL-2.0-only
/*
 * AQL queues, whose packets are those of the HSA standard: barriers, completion signals, and dispatches of real code
 * (code.c) or of a few kernels that are built in here. The object of such a kernel is a
 * 64-byte descriptor in GPU memory that starts with a magic number and names it; arguments are packed 64-bit words; work
 * item i does word i. A dispatch that is running can be preempted (wave.c).
 */
#include <linux/ktime.h>

#include "chip.h"
#include "gcn/dispatch.h"
#include "soc15_ih_clientid.h"

#define EOP_SOURCE	     181
#define PACKET_DWORDS	     16
#define NR_DEPS		     5
#define KERNEL_MAGIC	     0x314b4d4953444b46ULL /* "FKDSIMK1", little endian */
#define VENDOR_PM4_IB	     1 /* byte behind the header: ROCr invalidates caches this way; there are none */
#define VENDOR_BARRIER_VALUE 2

enum { AQL_VENDOR, AQL_INVALID, AQL_DISPATCH, AQL_BARRIER_AND, AQL_AGENT, AQL_BARRIER_OR };

struct aql_dispatch {
	u16 header, setup, workgroup[3], pad;
	u32 grid[3], private_size, group_size;
	u64 kernel_object, kernarg, reserved, completion;
};

struct aql_barrier {
	u16 header, pad[3];
	u64 dep[NR_DEPS], reserved, completion;
};

struct aql_barrier_value {
	u16 header;
	u8 format, pad[5];
	u64 signal;
	s64 value, mask;
	u32 condition, reserved[5];
	u64 completion;
};

union aql_packet {
	u16 header;
	u8 bytes[PACKET_DWORDS * sizeof(u32)];
	struct aql_dispatch dispatch;
	struct aql_barrier barrier;
	struct aql_barrier_value value;
};

struct aql_signal {
	s64 kind, value;
	u64 mailbox; /* slot of the event in the signal page, 0 for none */
	u32 event, pad;
	u64 start, end;
};

struct kernel_object {
	u64 magic;
	u32 kernel, reserved[13];
};

/* A queue's packet that is being run. */
struct aql_run {
	struct chip *chip;
	struct chip_queue *q;
	u64 fault;
};

static int load(struct aql_run *run, u64 va, void *to, size_t len)
{
	return chip_read(run->chip, &run->q->vm, va, to, len, &run->fault);
}

static int store(struct aql_run *run, u64 va, const void *from, size_t len)
{
	return chip_write(run->chip, &run->q->vm, va, from, len, &run->fault);
}

/* What cannot be run, with the value or address that is wrong. */
static int wrong(struct aql_run *run, const char *what, u64 value)
{
	pr_err("asicsim: compute queue of pasid %#x: %s: %#llx\n", run->q->vm.pasid, what, value);
	run->fault = value;
	return -EFAULT;
}

/* ---- signals and barriers ---- */

/* The new value of a signal, and its event. */
static int set_signal(struct aql_run *run, u64 handle, const struct aql_signal *s)
{
	u32 data[4] = { s->event & 0xffffff };
	u64 event = s->event;
	int err = store(run, handle + offsetof(struct aql_signal, value), &s->value, sizeof(s->value));

	if (err || !s->mailbox)
		return err;
	err = store(run, s->mailbox, &event, sizeof(event));
	chip_interrupt(run->chip, SOC15_IH_CLIENTID_GRBM_CP, EOP_SOURCE, 0, &run->q->vm, data);
	return err;
}

static int complete_packet(struct aql_run *run, u64 handle)
{
	struct aql_signal s;
	int err;

	if (!handle)
		return 0;
	err = load(run, handle, &s, sizeof(s));
	if (err)
		return err;
	s.start = s.end = ktime_get_ns() / 10;
	s.value--;
	return store(run, handle + offsetof(struct aql_signal, start), &s.start, 2 * sizeof(u64))
		       ?: set_signal(run, handle, &s);
}

static int load_signal_value(struct aql_run *run, u64 handle, s64 *value)
{
	return load(run, handle + offsetof(struct aql_signal, value), value, sizeof(*value));
}

/* 0: it is passed, -EAGAIN: it waits, or an error */
static int pass_barrier(struct aql_run *run, const struct aql_barrier *barrier, bool all)
{
	unsigned int waiting = 0, met = 0;
	s64 value;
	int err;

	for (unsigned int i = 0; i < NR_DEPS; i++) {
		if (!barrier->dep[i])
			continue;
		err = load_signal_value(run, barrier->dep[i], &value);
		if (err)
			return err;
		waiting += !!value;
		met += !value;
	}
	return waiting && (all || !met) ? -EAGAIN : 0;
}

static int pass_barrier_value(struct aql_run *run, const struct aql_barrier_value *barrier)
{
	s64 value;
	int err;

	if (!barrier->signal)
		return 0;
	err = load_signal_value(run, barrier->signal, &value);
	if (err)
		return err;
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
	}
	return wrong(run, "a barrier compares in an unknown way", barrier->condition);
}

/* ---- kernels; each does a chunk of words ---- */

static u32 *chunk_a(struct aql_run *run)
{
	return run->chip->fill;
}

static u32 *chunk_b(struct aql_run *run)
{
	return run->chip->fill2;
}

static int kernel_fill(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	memset32(chunk_a(run), w->args[1], words);
	return store(run, w->args[0] + offset, chunk_a(run), words * sizeof(u32));
}

static int kernel_add(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	int err = load(run, w->args[1] + offset, chunk_a(run), words * sizeof(u32));

	if (!err)
		err = load(run, w->args[2] + offset, chunk_b(run), words * sizeof(u32));
	if (err)
		return err;
	for (u32 i = 0; i < words; i++)
		chunk_a(run)[i] += chunk_b(run)[i];
	return store(run, w->args[0] + offset, chunk_a(run), words * sizeof(u32));
}

static int kernel_copy(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	int err = load(run, w->args[1] + offset, chunk_a(run), words * sizeof(u32));

	return err ?: store(run, w->args[0] + offset, chunk_a(run), words * sizeof(u32));
}

/* FNV-1a of 64 bits, word by word; the result is written at the end. */
static int kernel_checksum(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	int err = load(run, w->args[1] + offset, chunk_a(run), words * sizeof(u32));

	if (err)
		return err;
	if (!w->at)
		w->sum = 0xcbf29ce484222325ULL;
	for (u32 i = 0; i < words; i++)
		w->sum = (w->sum ^ chunk_a(run)[i]) * 0x100000001b3ULL;
	return w->at + words < w->items ? 0 : store(run, w->args[0], &w->sum, sizeof(w->sum));
}

/*
 * Adds up words as far as a gate lets it: it waits as long as the gate's value is not above the number of words that it
 * has done, and so can be caught in the middle.
 */
static int kernel_gather(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	u32 gate;
	int err = load(run, w->args[2], &gate, sizeof(gate));

	if (err)
		return err;
	if (gate <= w->at)
		return -EAGAIN;
	err = load(run, w->args[1] + offset, chunk_a(run), words * sizeof(u32));
	if (err)
		return err;
	for (u32 i = 0; i < words; i++)
		w->sum += chunk_a(run)[i];
	return store(run, w->args[0], &w->sum, sizeof(w->sum));
}

/* Ends so many nanoseconds after its begin, whether it runs or is preempted. */
static int kernel_nap(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words)
{
	if (!w->sum)
		w->sum = ktime_get_ns() + w->args[0];
	return ktime_get_ns() < w->sum ? -EAGAIN : 0;
}

static int (*const kernels[])(struct aql_run *run, struct chip_wave *w, u64 offset, u32 words) = {
	[1] = kernel_fill, [2] = kernel_add, [3] = kernel_copy, [4] = kernel_checksum, [5] = kernel_gather,
	[6] = kernel_nap,
};

static bool kernel_is_known(u32 kernel)
{
	return kernel < ARRAY_SIZE(kernels) && kernels[kernel];
}

static int launch(struct aql_run *run, const struct aql_dispatch *packet, const struct kernel_object *object)
{
	struct chip_wave w = {};
	int err;

	if (!kernel_is_known(object->kernel))
		return wrong(run, "the kernel is none of the built-in ones", packet->kernel_object);
	err = load(run, packet->kernarg, w.args, sizeof(w.args));
	if (err)
		return err;
	if (check_mul_overflow((u64)packet->grid[0], (u64)max(packet->grid[1], 1U), &w.items) ||
	    check_mul_overflow(w.items, (u64)max(packet->grid[2], 1U), &w.items))
		return wrong(run, "the grid is too large", packet->grid[0]);
	w.kernel = object->kernel;
	run->q->wave = w;
	return 0;
}

/* ---- private memory ---- */

/* A runtime's description of its queue begins this far before the place where the chip counts its packets. */
#define QUEUE_READ_INDEX 0x80
#define QUEUE_PRIVATE	 0x8c

/* Of that description: the memory that the runtime has allocated for the queue's waves. */
struct aql_private {
	u32 tmpring, buffer[4]; /* as registers have them */
	u64 base, reserved; /* its size, in ROCm 6 alone */
	u32 item_bytes, properties, reserved2[2];
	u64 inactive; /* a signal: the queue waits until the runtime has set it to 0 */
} __packed;

enum { PRIVATE_FOR_ONE_PACKET = 1 << 4 }; /* of the properties */
enum { WANTS_PRIVATE = 1, HAS_USED_PRIVATE = 1 << 9 }; /* why a queue is inactive */

static int load_private(struct aql_run *run, struct aql_private *m)
{
	return load(run, run->q->rptr_addr - QUEUE_READ_INDEX + QUEUE_PRIVATE, m, sizeof(*m));
}

static int make_inactive(struct aql_run *run, const struct aql_private *m, u32 why)
{
	struct aql_signal s;
	int err;

	if (!m->inactive)
		return wrong(run, "nobody gives the queue private memory", why);
	err = load(run, m->inactive, &s, sizeof(s));
	if (err)
		return err;
	s.value |= why;
	return set_signal(run, m->inactive, &s);
}

/* -EAGAIN: the packet's kernel waits for private memory. Nothing of that is known but by what is in the process' memory. */
static int take_private(struct aql_run *run, const struct aql_dispatch *packet, struct gcn_packet *p)
{
	struct aql_private m;
	s64 inactive = 0;
	int err = load_private(run, &m);

	if (!err && m.inactive && !run->q->code)
		err = load_signal_value(run, m.inactive, &inactive);
	if (err || inactive)
		return err ?: -EAGAIN;
	if (packet->private_size > m.item_bytes)
		return make_inactive(run, &m, WANTS_PRIVATE) ?: -EAGAIN;
	p->private_base = m.base;
	memcpy(p->private_buffer, m.buffer, sizeof(m.buffer));
	p->private_waves = m.tmpring & 0xfff;
	p->private_wave_bytes = (m.tmpring >> 12 & 0x1fff) << 10;
	p->private_size = packet->private_size;
	if (!p->private_waves || (u64)packet->private_size * GCN_LANES > p->private_wave_bytes)
		return wrong(run, "the queue's private memory does not have its size", m.tmpring);
	return 0;
}

/* A runtime takes much memory back when the packet is done. */
static int give_private_back(struct aql_run *run)
{
	struct aql_private m;
	int err = load_private(run, &m);

	if (err || !(m.properties & PRIVATE_FOR_ONE_PACKET))
		return err;
	return make_inactive(run, &m, HAS_USED_PRIVATE);
}

static int dispatch_code(struct aql_run *run, const struct aql_dispatch *packet)
{
	struct chip_queue *q = run->q;
	struct gcn_packet p = {
		.va = q->base + ((q->rptr * sizeof(u32)) & (q->size - 1)),
		.queue = q->rptr_addr - QUEUE_READ_INDEX,
		.kernel = packet->kernel_object,
		.arguments = packet->kernarg,
		.workgroup = { packet->workgroup[0], packet->workgroup[1], packet->workgroup[2] },
		.grid = { packet->grid[0], packet->grid[1], packet->grid[2] },
		.lds_size = packet->group_size,
	};
	int err = 0;

	for (int i = packet->setup & 3; i < 3; i++)
		p.workgroup[i] = p.grid[i] = 1;
	if (packet->private_size)
		err = take_private(run, packet, &p);
	err = err ?: code_run(run->chip, q, &p, &run->fault);
	return err || !packet->private_size ? err : give_private_back(run);
}

/* Goes on with a kernel that is running or was preempted, else launches the packet's; to its end, or until it waits. */
static int dispatch_built_in(struct aql_run *run, const struct aql_dispatch *packet, const struct kernel_object *object)
{
	struct chip_wave *w = &run->q->wave;
	u32 words;
	int err = 0;

	if (run->q->wave_is_saved)
		err = wave_load(run->chip, run->q, &run->fault);
	else if (!w->kernel)
		err = launch(run, packet, object);
	if (!err && !kernel_is_known(w->kernel))
		err = wrong(run, "the preempted kernel is none of the built-in ones", w->kernel);
	for (; !err && w->at < w->items; w->at += words) {
		words = min_t(u64, w->items - w->at, CHIP_FILL_WORDS);
		err = kernels[w->kernel](run, w, w->at * sizeof(u32), words);
		if (err)
			break;
	}
	if (err != -EAGAIN)
		w->kernel = 0;
	return err;
}

static int dispatch(struct aql_run *run, const struct aql_dispatch *packet)
{
	struct kernel_object object;
	int err = load(run, packet->kernel_object, &object, sizeof(object));

	if (err)
		return err;
	return object.magic == KERNEL_MAGIC ? dispatch_built_in(run, packet, &object) : dispatch_code(run, packet);
}

/* ---- the queue ---- */

static int run_packet(struct aql_run *run, const union aql_packet *packet)
{
	switch (packet->header & 0xff) {
	case AQL_INVALID:
		return -EAGAIN;
	case AQL_DISPATCH:
		return dispatch(run, &packet->dispatch);
	case AQL_BARRIER_AND:
		return pass_barrier(run, &packet->barrier, true);
	case AQL_BARRIER_OR:
		return pass_barrier(run, &packet->barrier, false);
	case AQL_VENDOR:
		if (packet->bytes[2] == VENDOR_BARRIER_VALUE)
			return pass_barrier_value(run, &packet->value);
		if (packet->bytes[2] == VENDOR_PM4_IB)
			return 0;
		break;
	}
	return wrong(run, "the packet's type is not one that can be run", packet->header);
}

/* Hands the packet's slot back to the process, moves on, and then completes the packet. */
static int retire(struct aql_run *run, const union aql_packet *packet)
{
	static const u16 invalid = AQL_INVALID;
	struct chip_queue *q = run->q;
	u64 number;
	int err = store(run, q->base + ((q->rptr * sizeof(u32)) & (q->size - 1)), &invalid, sizeof(invalid));

	if (err)
		return err;
	q->rptr += PACKET_DWORDS;
	number = q->rptr / PACKET_DWORDS;
	/* All kinds of packets have the signal at the same place. */
	return store(run, q->rptr_addr, &number, sizeof(number)) ?: complete_packet(run, packet->barrier.completion);
}

/* The doorbell of an AQL queue holds the number of the last packet; the MQD counts in dwords. */
bool aql_run(struct chip *chip, struct chip_queue *q)
{
	struct aql_run run = { .chip = chip, .q = q };
	u64 end = READ_ONCE(*q->doorbell) + 1;
	union aql_packet packet;
	bool any = false;
	int err;

	if (!q->aql)
		return false;
	mes_derive(q, end);
	while (q->rptr / PACKET_DWORDS < end && !q->stopped) {
		packet.header = 0;
		err = queue_read(chip, q, q->rptr * sizeof(u32), (u32 *)&packet, PACKET_DWORDS, &run.fault) ?:
		      run_packet(&run, &packet) ?: retire(&run, &packet);
		if (err == -EAGAIN) {
			any |= q->code != NULL;
			break;
		}
		if (err) {
			queue_fault(chip, q, err, packet.header, run.fault);
			break;
		}
		any = true;
	}
	return any;
}
