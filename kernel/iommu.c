// SPDX-License-Identifier: GPL-2.0-only
/* Groups of the IOMMU, from the directories of PCI devices. */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "kernel/iommu.h"
#include "kernel/sysfs.h"

void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret)
{
	char device[SYSFS_PCI_PATH_MAX], path[128], link[256] = "", type[32] = "";
	_cleanup_close_ int fd = -1;

	*ret = (struct iommu_group){ 0 };
	sysfs_pci_path(node, device);
	snprintf(path, sizeof(path), "%s/iommu_group", device);
	if (readlinkat(sysfs, path, link, sizeof(link) - 1) < 0 || !strrchr(link, '/'))
		return;
	snprintf(ret->number, sizeof(ret->number), "%s", strrchr(link, '/') + 1);
	snprintf(path, sizeof(path), "%s/iommu_group/type", device);
	fd = openat(sysfs, path, O_RDONLY | O_CLOEXEC);
	/* "unknown": the group has no addresses of its own. */
	ret->translates = fd >= 0 && !read_text(fd, type, sizeof(type)) && strncmp(type, "identity", 8) &&
			  strncmp(type, "unknown", 7);
}

bool iommu_is_common(const struct iommu_group *a, const struct iommu_group *b)
{
	return (!a->translates && !b->translates) || !strcmp(a->number, b->number);
}
