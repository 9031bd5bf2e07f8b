/* SPDX-License-Identifier: GPL-2.0-only */
/* The KFD's topology in sysfs, which nothing else of the plugin reads, and the directories of its GPUs' PCI devices. */
#ifndef KERNEL_SYSFS_H
#define KERNEL_SYSFS_H

#include "amdgpu_plugin_topology.h"

/* Where the KFD keeps the topology. */
#define SYSFS_TOPOLOGY_ROOT "/sys/class/kfd/kfd/topology"

/*
 * Reads what lies below root (".../kfd/topology": generation_id, nodes/N/...).
 * Nodes come out in ascending order of their number. When the generation moves
 * meanwhile it starts again, a bounded number of times.
 *
 * Returns 0 and a topology that the caller frees with topology_free();
 * -ENOENT, no message, when there is no such topology (no KFD);
 * other -errno: -EAGAIN when the generation never stood
 * still, -EINVAL for contents that cannot be understood, -E2BIG for more than
 * TOPOLOGY_MAX_NODES nodes.
 */
int sysfs_read_topology(const char *root, struct topology **ret);

/*
 * Whether the device cgroup of the caller hides a node of the topology. @sysfs: an fd of the root of a sysfs.
 * @otherwise: the answer where it cannot be read, such as with an @sysfs of -1.
 */
bool sysfs_node_is_hidden(int sysfs, uint32_t node, bool otherwise);

/*
 * The directory of a GPU's PCI device in a sysfs, SYSFS_PCI_PATH_MAX bytes with the end. Partitions have no device of
 * their own: theirs is that with function 0.
 */
#define SYSFS_PCI_PATH_MAX 48
void sysfs_pci_path(const struct topology_node *node, char *path);

/* A GPU's group of the IOMMU: GPUs reach system memory by its own addresses, or by those of an IOMMU. */
struct iommu_group {
	char number[16]; /* empty: none */
	bool translates;
};

/* @sysfs: an fd of the root of a sysfs. What cannot be read counts as no IOMMU. */
void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret);

/*
 * Whether system memory that is mapped for a GPU in one group is so for a GPU in the other one, too: no IOMMU translates
 * for either, or it is the same group.
 */
bool iommu_is_common(const struct iommu_group *a, const struct iommu_group *b);

#endif
