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

#endif
