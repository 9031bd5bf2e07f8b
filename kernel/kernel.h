/* SPDX-License-Identifier: GPL-2.0-only */
/* What other folders use of kernel/. */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include "kernel/cow.h"
#include "kernel/device.h"
#include "kernel/driver.h"
#include "kernel/fold.h"
#include "kernel/kfd.h"
#include "kernel/limits.h"
#include "kernel/memory.h"
#include "kernel/mount.h"
#include "kernel/nodes.h"
#include "kernel/records.h"
#include "kernel/stacks.h"
#include "kernel/standin.h"
#include "kernel/sysfs.h"
#include "kernel/tasks.h"
#include "kernel/trap.h"
#include "kernel/usage.h"

#endif
