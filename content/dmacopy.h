/* SPDX-License-Identifier: GPL-2.0-only */
/* The copier with DMA rings: the GPU copies. */
#ifndef CONTENT_DMACOPY_H
#define CONTENT_DMACOPY_H

#include "content/copier.h"

extern const struct copier_ops dmacopy_ops;

#endif
