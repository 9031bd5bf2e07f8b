/* SPDX-License-Identifier: GPL-2.0-only */
/* What other folders use of kernel/. */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include "kernel/driver.h"
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "kernel/mes.h"
#include "kernel/state.h"
#include "kernel/tasks.h"

#endif
