/* SPDX-License-Identifier: GPL-2.0-only */
/* How GPUs reach system memory: by its own addresses, or by those of an IOMMU. */
#ifndef KERNEL_IOMMU_H
#define KERNEL_IOMMU_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"

/* A GPU's group of the IOMMU. */
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
