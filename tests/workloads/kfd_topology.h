/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPUs that sysfs lists.
 */
#ifndef WORKLOADS_KFD_TOPOLOGY_H
#define WORKLOADS_KFD_TOPOLOGY_H

struct kfd_gpu;

/*
 * Fills @gpus with what /sys/class/kfd describes, in the order of node numbers; nodes that the device
 * cgroup hides are left out. Returns their number or -errno (reported).
 */
int kfd_topology_read(struct kfd_gpu *gpus, unsigned int max_gpus);

#endif
