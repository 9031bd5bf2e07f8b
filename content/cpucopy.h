/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The copier without DMA rings: the CPU copies through a mapping of the BO's dma-buf.
 */
#ifndef CONTENT_CPUCOPY_H
#define CONTENT_CPUCOPY_H

#include "content/copier.h"

/* As the functions of the same name in content/copier.h; a copy is done when its call returns. */
int cpucopy_init(struct copier *copier);
void cpucopy_done(struct copier *copier);
int cpucopy_map(struct copier *copier, struct copier_bo *bo, uint64_t size);
int cpucopy_unmap(struct copier *copier, struct copier_bo *bo);
/* @staging_off: from the beginning of the staging memory. */
int cpucopy_copy(struct copier *copier, struct copier_bo *bo, uint64_t bo_off, uint64_t staging_off, uint64_t len);
int cpucopy_zero(struct copier *copier, struct copier_bo *bo, uint64_t bo_off, uint64_t len);

#endif
