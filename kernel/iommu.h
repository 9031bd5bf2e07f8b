/* SPDX-License-Identifier: GPL-2.0-only */
/* How GPUs reach system memory: by its own addresses, or by those of an IOMMU. */
#ifndef KERNEL_IOMMU_H
#define KERNEL_IOMMU_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"

/*
 * Whether system memory that is mapped for one GPU is so for the other one, too: no IOMMU translates for either, or
 * they are in one group of it. @sysfs: an fd of the root of a sysfs. What cannot be read counts as no IOMMU.
 */
bool iommu_is_common(int sysfs, const struct topology_node *a, const struct topology_node *b);

#endif
