// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encoding of SDMA packets. Pure: memory in, dwords out.
 *
 * The packet layouts are the same from SDMA 4.0 (gfx9) to 7. The count field holds bytes - 1. It has 22 bits on SDMA 4.0,
 * and since nothing is gained by larger packets, that limit is kept for all.
 */
#include "content/sdma.h"

#define OP_NOP		0u
#define OP_COPY		1u /* sub-op 0: linear */
#define OP_CONST_FILL	11u
/* In the header of a constant fill: the unit is a dword; 0 is a byte. */
#define FILL_UNIT_DWORD (2u << 30)

#define MAX_BYTES (4u << 20) /* 2^22, held as 2^22 - 1 */

static void put_dword(struct sdma_ib *ib, uint32_t dw)
{
	ib->dw[ib->nr_dw++] = dw;
}

static void put_address(struct sdma_ib *ib, uint64_t address)
{
	put_dword(ib, (uint32_t)address);
	put_dword(ib, (uint32_t)(address >> 32));
}

uint64_t sdma_add_copy(struct sdma_ib *ib, uint64_t dst, uint64_t src, uint64_t len)
{
	uint64_t done = 0;

	while (done < len && ib->max_dw - ib->nr_dw >= SDMA_COPY_DWORDS) {
		uint64_t bytes = len - done < MAX_BYTES ? len - done : MAX_BYTES;

		put_dword(ib, OP_COPY);
		put_dword(ib, (uint32_t)(bytes - 1));
		put_dword(ib, 0); /* no byte swap, default cache policy */
		put_address(ib, src + done);
		put_address(ib, dst + done);
		done += bytes;
	}
	return done;
}

uint64_t sdma_add_zeros(struct sdma_ib *ib, uint64_t dst, uint64_t len)
{
	uint64_t done = 0;

	while (done < len && ib->max_dw - ib->nr_dw >= SDMA_FILL_DWORDS) {
		uint64_t bytes = len - done < MAX_BYTES ? len - done : MAX_BYTES;
		bool dwords = !((dst + done) % 4) && !(bytes % 4);

		put_dword(ib, OP_CONST_FILL | (dwords ? FILL_UNIT_DWORD : 0));
		put_address(ib, dst + done);
		put_dword(ib, 0); /* the value */
		put_dword(ib, (uint32_t)(bytes - 1));
		done += bytes;
	}
	return done;
}

void sdma_finish(struct sdma_ib *ib)
{
	while (ib->nr_dw % SDMA_IB_ALIGN_DWORDS)
		put_dword(ib, OP_NOP);
}
