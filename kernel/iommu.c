// SPDX-License-Identifier: GPL-2.0-only
/* Groups of the IOMMU, from the directories of PCI devices. */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "kernel/iommu.h"
#include "kernel/sysfs.h"

struct group {
	char number[16]; /* empty: none */
	bool translates;
};

static void read_group(int sysfs, const struct topology_node *node, struct group *ret)
{
	char device[SYSFS_PCI_PATH_MAX], path[128], link[256] = "", type[32] = "";
	_cleanup_close_ int fd = -1;

	*ret = (struct group){ 0 };
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

bool iommu_is_common(int sysfs, const struct topology_node *a, const struct topology_node *b)
{
	struct group x, y;

	read_group(sysfs, a, &x);
	read_group(sysfs, b, &y);
	return (!x.translates && !y.translates) || !strcmp(x.number, y.number);
}
