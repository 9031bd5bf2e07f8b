/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SDMA packets for an indirect buffer (IB) of gfx9 and later GPUs: linear copy, constant fill, padding.
 */
#ifndef CONTENT_SDMA_H
#define CONTENT_SDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SDMA_COPY_DWORDS     7
#define SDMA_FILL_DWORDS     5
/* IBs end on a multiple of this. */
#define SDMA_IB_ALIGN_DWORDS 8

struct sdma_ib {
	uint32_t *dw; /* borrowed */
	size_t nr_dw;
	size_t max_dw; /* multiple of SDMA_IB_ALIGN_DWORDS */
};

/*
 * Add the packets for @len bytes as far as there is room. Return the bytes that the added
 * packets cover: less than @len when the IB is full.
 */
uint64_t sdma_add_copy(struct sdma_ib *ib, uint64_t dst, uint64_t src, uint64_t len);
uint64_t sdma_add_zeros(struct sdma_ib *ib, uint64_t dst, uint64_t len);

/* Pads with NOPs; nothing can be added afterwards. */
void sdma_finish(struct sdma_ib *ib);

#endif
