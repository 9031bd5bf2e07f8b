/* SPDX-License-Identifier: GPL-2.0-only */
/* Interfaces of the driver that differ between the kernel releases for which it is built. */
#ifndef ASICSIM_COMPAT_H
#define ASICSIM_COMPAT_H

#include <linux/version.h>

#include "amdgpu.h"

/* Most functions of an IP block got the device, and get the block since 6.14. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
typedef struct amdgpu_ip_block *block_arg;

static inline struct amdgpu_device *block_adev(block_arg block)
{
	return block->adev;
}
#else
typedef void *block_arg;

static inline struct amdgpu_device *block_adev(block_arg adev)
{
	return adev;
}
#endif

/* Since 7.3, every chip may be reset in parts. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#include "amdgpu_video_codecs.h"
#define WITHOUT_FULL_RESET(no)
#else
#define WITHOUT_FULL_RESET(no) .need_full_reset = (no),
#endif

#endif
