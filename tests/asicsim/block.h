/* SPDX-License-Identifier: GPL-2.0-only */
/* What every IP block of ours must have and has no use for: powers, clocks, waiting. */
#ifndef ASICSIM_BLOCK_H
#define ASICSIM_BLOCK_H

#include "compat.h"

static inline int block_nothing(block_arg arg)
{
	return 0;
}

static inline bool block_is_idle(block_arg arg)
{
	return true;
}

static inline int block_no_clockgating(block_arg arg, enum amd_clockgating_state state)
{
	return 0;
}

static inline int block_no_powergating(block_arg arg, enum amd_powergating_state state)
{
	return 0;
}

#define BLOCK_QUIET                                                                            \
	.is_idle = block_is_idle, .wait_for_idle = block_nothing, .soft_reset = block_nothing, \
	.set_clockgating_state = block_no_clockgating, .set_powergating_state = block_no_powergating

#endif
