/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of this machine's GPUs others use. */
#ifndef KERNEL_USAGE_H
#define KERNEL_USAGE_H

#include <stddef.h>

#include "amdgpu_plugin_topology.h"

/*
 * Fills in @usage, one for each node of @machine. @sysfs: an fd of the root of a sysfs. What cannot be read is
 * unknown, which is no error. The VRAM of a GPU that has none of its own (APU) is unknown.
 */
void usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage);

/* As usage_read(), of the VRAM of one GPU: a part of @usage stays as it is. */
void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage);

/* Adds to @usage on which GPUs a process has queues; its pid is that of the initial pid namespace. */
void usage_read_queues(int sysfs, int pid, const struct topology *machine, struct gpu_usage *usage);

/*
 * How many processes have ended and are still known to the KFD: their queues and buffers are there until it has taken
 * them down. 0 where pids are not the kernel's own (another pid namespace than the first).
 */
size_t usage_count_ended(int sysfs);

#endif
