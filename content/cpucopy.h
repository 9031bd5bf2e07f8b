/* SPDX-License-Identifier: GPL-2.0-only */
/* The copier without DMA rings: the CPU copies through a mapping of the BO's dma-buf. */
#ifndef CONTENT_CPUCOPY_H
#define CONTENT_CPUCOPY_H

#include "content/copier.h"

/* A copy is done when its call returns. */
extern const struct copier_ops cpucopy_ops;

#endif
