// SPDX-License-Identifier: GPL-2.0-only
/*
 * asicsim_iommu.ko: an IOMMU before those simulated GPUs whose configuration asks for one. Each GPU is a group of its
 * own with its own addresses of system memory, as with the IOMMU of a board that translates (DMA or DMA-FQ, the default
 * of many distributions). The chip translates by iommu_iova_to_phys() (walk.c).
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "pci_config.h"

struct translation {
	struct iommu_domain domain;
	struct xarray pages; /* page numbers of memory, by page numbers of the device */
};

static struct iommu_device iommu;

static struct translation *translation_of(struct iommu_domain *domain)
{
	return container_of(domain, struct translation, domain);
}

static bool is_capable(struct device *dev, enum iommu_cap cap)
{
	return cap == IOMMU_CAP_CACHE_COHERENCY || cap == IOMMU_CAP_DEFERRED_FLUSH;
}

static struct iommu_device *probe_device(struct device *dev)
{
	u32 wanted = 0;

	if (dev_is_pci(dev) && to_pci_dev(dev)->vendor == PCI_VENDOR_ID_ATI)
		pci_read_config_dword(to_pci_dev(dev), ASICSIM_CONFIG_AT + offsetof(struct asicsim_config, iommu),
				      &wanted);
	return wanted == 1 ? &iommu : ERR_PTR(-ENODEV);
}

static struct iommu_domain *domain_alloc_paging(struct device *dev)
{
	struct translation *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return ERR_PTR(-ENOMEM);
	xa_init(&t->pages);
	t->domain.pgsize_bitmap = PAGE_SIZE;
	t->domain.geometry.aperture_end = (1ULL << 44) - 1;
	t->domain.geometry.force_aperture = true;
	return &t->domain;
}

static void domain_free(struct iommu_domain *domain)
{
	struct translation *t = translation_of(domain);

	xa_destroy(&t->pages);
	kfree(t);
}

static int attach_dev(struct iommu_domain *domain, struct device *dev, struct iommu_domain *old)
{
	return 0;
}

static int map_pages(struct iommu_domain *domain, unsigned long address, phys_addr_t phys, size_t page_size, size_t nr,
		     int prot, gfp_t gfp, size_t *mapped)
{
	struct xarray *pages = &translation_of(domain)->pages;
	int err;

	for (size_t i = 0; i < nr; i++, *mapped += PAGE_SIZE) {
		err = xa_err(xa_store(pages, PHYS_PFN(address) + i, xa_mk_value(PHYS_PFN(phys) + i), gfp));
		if (err)
			return err;
	}
	return 0;
}

static size_t unmap_pages(struct iommu_domain *domain, unsigned long address, size_t page_size, size_t nr,
			  struct iommu_iotlb_gather *gather)
{
	for (size_t i = 0; i < nr; i++)
		xa_erase(&translation_of(domain)->pages, PHYS_PFN(address) + i);
	return nr * PAGE_SIZE;
}

static phys_addr_t iova_to_phys(struct iommu_domain *domain, dma_addr_t address)
{
	void *page = xa_load(&translation_of(domain)->pages, PHYS_PFN(address));

	return page ? PFN_PHYS(xa_to_value(page)) + (address & ~PAGE_MASK) : 0;
}

/* Nothing is cached. */
static void flush_all(struct iommu_domain *domain)
{
}

static const struct iommu_domain_ops domain_ops = {
	.attach_dev = attach_dev,
	.map_pages = map_pages,
	.unmap_pages = unmap_pages,
	.flush_iotlb_all = flush_all,
	.iova_to_phys = iova_to_phys,
	.free = domain_free,
};

static const struct iommu_ops iommu_operations = {
	.owner = THIS_MODULE,
	.capable = is_capable,
	.probe_device = probe_device,
	.device_group = generic_device_group,
	.domain_alloc_paging = domain_alloc_paging,
	.default_domain_ops = &domain_ops,
};

static int __init asicsim_iommu_init(void)
{
	int err = iommu_device_sysfs_add(&iommu, NULL, NULL, "asicsim");

	if (err)
		return err;
	err = iommu_device_register(&iommu, &iommu_operations, NULL);
	if (err)
		iommu_device_sysfs_remove(&iommu);
	return err;
}

static void asicsim_iommu_exit(void)
{
	iommu_device_unregister(&iommu);
	iommu_device_sysfs_remove(&iommu);
}

module_init(asicsim_iommu_init);
module_exit(asicsim_iommu_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("IOMMU of simulated AMD GPUs");
