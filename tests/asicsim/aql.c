// SPDX-License-Identifier: GPL-2.0-only
/* AQL queues: packets as the HSA standard has them. Barriers are waited for; a completion signal counts and interrupts. */
#include <linux/ktime.h>

#include "chip.h"
#include "soc15_ih_clientid.h"

#define EOP_SOURCE 181
#define PACKET_DWORDS 16
#define NR_DEPS 5
#define SIGNAL_VALUE 8 /* offsets in a signal */
#define SIGNAL_TIMES 32

enum { AQL_VENDOR, AQL_INVALID, AQL_DISPATCH, AQL_BARRIER_AND, AQL_AGENT, AQL_BARRIER_OR };

struct aql_packet {
	u16 header, rest[3];
	u32 dw[12];
	u64 signal;
};

struct aql_signal {
	s64 kind, value;
	u64 mailbox;
	u32 event, pad;
	u64 start, end;
};

/* What a packet processor does at the end of a packet that has a signal. */
static int complete_packet(struct chip *chip, struct chip_queue *q, u64 signal, u64 *fault)
{
	struct aql_signal s;
	u32 data[4] = {};
	u64 event;
	int err;

	if (!signal)
		return 0;
	err = chip_read(chip, &q->vm, signal, &s, sizeof(s), fault);
	if (err)
		return err;
	s.start = s.end = ktime_get_ns() / 10;
	s.value--;
	err = chip_write(chip, &q->vm, signal + SIGNAL_TIMES, &s.start, 2 * sizeof(u64), fault) ?:
	      chip_write(chip, &q->vm, signal + SIGNAL_VALUE, &s.value, sizeof(s.value), fault);
	if (err || !s.mailbox)
		return err;
	event = s.event;
	err = chip_write(chip, &q->vm, s.mailbox, &event, sizeof(event), fault);
	data[0] = s.event & 0xffffff;
	chip_interrupt(chip, SOC15_IH_CLIENTID_GRBM_CP, EOP_SOURCE, 0, &q->vm, data);
	return err;
}

/* 0: the barrier is passed, -EAGAIN: it waits, or an error */
static int check_barrier(struct chip *chip, struct chip_queue *q, const struct aql_packet *packet, u64 *fault)
{
	unsigned int nr = 0, nr_met = 0;
	u64 deps[NR_DEPS];
	s64 value;
	int err;

	memcpy(deps, packet->dw, sizeof(deps));
	for (unsigned int i = 0; i < NR_DEPS; i++) {
		if (!deps[i])
			continue;
		err = chip_read(chip, &q->vm, deps[i] + SIGNAL_VALUE, &value, sizeof(value), fault);
		if (err)
			return err;
		nr++;
		nr_met += !value;
	}
	if ((packet->header & 0xff) == AQL_BARRIER_AND)
		return nr_met == nr ? 0 : -EAGAIN;
	return nr_met || !nr ? 0 : -EAGAIN;
}

static int run_packet(struct chip *chip, struct chip_queue *q, const struct aql_packet *packet, u64 *fault)
{
	int err = 0;

	switch (packet->header & 0xff) {
	case AQL_INVALID:
		return -EAGAIN;
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		err = check_barrier(chip, q, packet, fault);
		break;
	}
	return err ?: complete_packet(chip, q, packet->signal, fault);
}

/* The doorbell of an AQL queue holds the number of the last packet; the MQD counts in dwords. */
bool aql_run(struct chip *chip, struct chip_queue *q)
{
	u64 end = READ_ONCE(*q->doorbell) + 1, fault = 0, number;
	static const u16 invalid = AQL_INVALID;
	struct aql_packet packet;
	bool any = false;
	int err;

	if (!q->aql)
		return false;
	while (q->rptr / PACKET_DWORDS < end && !q->stopped) {
		err = queue_read(chip, q, q->rptr * sizeof(u32), (u32 *)&packet, PACKET_DWORDS, &fault) ?:
		      run_packet(chip, q, &packet, &fault);
		if (err == -EAGAIN)
			break;
		if (err) {
			queue_fault(chip, q, err, packet.header, fault);
			break;
		}
		chip_write(chip, &q->vm, q->base + ((q->rptr * sizeof(u32)) & (q->size - 1)), &invalid, sizeof(invalid), NULL);
		q->rptr += PACKET_DWORDS;
		any = true;
		number = q->rptr / PACKET_DWORDS;
		chip_write(chip, &q->vm, q->rptr_addr, &number, sizeof(number), NULL);
	}
	return any;
}
