/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues of MES (kernel/mes.h) are created in a stopped process. */
#ifndef STOPPED_RECREATE_H
#define STOPPED_RECREATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel.h"

/*
 * Creates them in process @pid, whose threads the caller traces and are in ptrace stops, after RESUME. @kfd: a file of
 * the caller's own. 0, or -errno after fail(): the process is not to run then.
 */
int mes_recreate(int kfd, pid_t pid, const struct queue_record *queues, size_t nr);

#endif
