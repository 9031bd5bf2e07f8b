/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that the module builds against (6.1, 6.12, 7.2). Nothing else goes here. */
#ifndef KFDSIM_COMPAT_H
#define KFDSIM_COMPAT_H

#include <linux/version.h>

#define SIM_KERNEL_BEFORE(major, minor) (LINUX_VERSION_CODE < KERNEL_VERSION(major, minor, 0))

/* The name space became a string in 6.13. */
#if SIM_KERNEL_BEFORE(6, 13)
#define SIM_IMPORT_NS(ns) MODULE_IMPORT_NS(ns)
#else
#define SIM_IMPORT_NS(ns) MODULE_IMPORT_NS(#ns)
#endif

/* Functions with and without the dma-buf's lock were told apart in 6.2. */
#if SIM_KERNEL_BEFORE(6, 2)
#define sim_dma_buf_map dma_buf_map_attachment
#define sim_dma_buf_unmap dma_buf_unmap_attachment
#else
#define sim_dma_buf_map dma_buf_map_attachment_unlocked
#define sim_dma_buf_unmap dma_buf_unmap_attachment_unlocked
#endif

/* Pinning lost an argument in 6.5. */
#if SIM_KERNEL_BEFORE(6, 5)
#define sim_pin_user_pages_remote(mm, start, n, flags, pages, locked) \
	pin_user_pages_remote(mm, start, n, flags, pages, NULL, locked)
#else
#define sim_pin_user_pages_remote pin_user_pages_remote
#endif

#endif
