/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AQL packets and signals as ROCr lays them out, and the kernels that every simulated chip has (tests/asicsim).
 */
#ifndef WORKLOADS_AQL_H
#define WORKLOADS_AQL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AQL_PACKETS	 64u /* in a ring */
#define AQL_PACKET_BYTES 64u
#define AQL_KERNEL_MAGIC 0x314b4d4953444b46ull

enum { AQL_INVALID = 1, AQL_DISPATCH = 2, AQL_BARRIER_AND = 3, AQL_IN_ORDER = 1 << 8 | 2 << 9 | 2 << 11 /* with fences of the system */ };
enum { AQL_KERNEL_FILL = 1, AQL_KERNEL_ADD = 2, AQL_KERNEL_COPY = 3, AQL_KERNEL_GATHER = 5 /* waits in the middle */, AQL_KERNEL_NAP /* ends after so many ns */ };

struct aql_dispatch {
	uint16_t header, setup, workgroup[3], pad;
	uint32_t grid[3], private_size, group_size;
	uint64_t kernel_object, kernarg, reserved, completion;
};

struct aql_barrier {
	uint16_t header, pad[3];
	uint64_t dep[5], reserved, completion;
};

struct aql_signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, pad;
	uint64_t start, end, reserved[3];
};

struct aql_kernel {
	uint64_t magic;
	uint32_t kernel, pad[13];
};

/* As ROCm's runtime describes a queue, around its indices. */
struct aql_runtime_queue {
	uint32_t type, features;
	uint64_t ring, doorbell_signal;
	uint32_t size, reserved1; /* packets */
	uint64_t id, reserved2[2];
	volatile uint64_t write_index;
	uint64_t reserved3[8];
	volatile uint64_t read_index;
	uint32_t read_index_at; /* by which firmware finds the rest */
};
_Static_assert(offsetof(struct aql_runtime_queue, write_index) == 0x38, "amd_queue_t");
_Static_assert(offsetof(struct aql_runtime_queue, read_index) == 0x80, "amd_queue_t");

static inline void aql_ring_init(void *ring)
{
	for (unsigned int i = 0; i < AQL_PACKETS; i++)
		*(uint16_t *)((uint8_t *)ring + AQL_PACKET_BYTES * i) = AQL_INVALID;
}

/* Body first, header last, as the queue's contract is; then the doorbell. @next: the packet's number. */
static inline void aql_put(void *ring, volatile uint64_t *wptr, volatile uint64_t *doorbell, uint64_t next,
			   const void *packet)
{
	uint8_t *slot = (uint8_t *)ring + next % AQL_PACKETS * AQL_PACKET_BYTES;

	memcpy(slot + 2, (const uint8_t *)packet + 2, AQL_PACKET_BYTES - 2);
	*wptr = next + 1;
	__atomic_store_n((uint16_t *)slot, *(const uint16_t *)packet, __ATOMIC_RELEASE);
	*doorbell = next;
}

#endif
