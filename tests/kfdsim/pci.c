// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI devices for the simulated GPUs, on virtual root buses of the module's
 * own: one bus for each (domain, bus) of the description, whose config space
 * is a few hundred bytes in memory. Nothing else answers there: BARs show
 * their size and a free address, but no memory is behind them. A driver
 * called "amdgpu" claims the devices, so that the real one keeps away.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "device.h"

#define PCIE_CAP_OFFSET	   0x64
#define DOORBELL_BAR_BYTES SZ_2M
#define BAR_VRAM	   0
#define BAR_DOORBELL	   2

/* What a BAR pair (64 bits, prefetchable) shows. */
struct bar {
	unsigned int index;
	u64 size; /* 0: none */
	struct resource res;
};

struct function {
	struct list_head link;
	unsigned int devfn;
	u8 config[PCI_CFG_SPACE_SIZE];
	struct bar bars[2];
	bool iommu;
	struct pci_dev *pdev;
};

struct root_bus {
	struct pci_sysdata sysdata; /* what pci_bus.sysdata points to */
	struct list_head link;
	unsigned int nr;
	struct list_head functions;
	struct pci_bus *bus;
};

static LIST_HEAD(buses);
static bool driver_registered;

/* ---- config space ---- */

static struct function *function_of(struct pci_bus *bus, unsigned int devfn)
{
	struct root_bus *root = container_of(bus->sysdata, struct root_bus, sysdata);
	struct function *fn;

	list_for_each_entry(fn, &root->functions, link)
		if (fn->devfn == devfn)
			return fn;
	return NULL;
}

static u32 config_get(const struct function *fn, int where, int size)
{
	u32 value = 0;

	memcpy(&value, fn->config + where, size);
	return le32_to_cpu((__force __le32)value);
}

static void config_set(struct function *fn, int where, int size, u32 value)
{
	__le32 raw = cpu_to_le32(value);

	memcpy(fn->config + where, &raw, size);
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	const struct function *fn = function_of(bus, devfn);

	if (!fn) {
		*value = ~0U;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	/* The extended space exists and has no capabilities. */
	*value = where + size <= PCI_CFG_SPACE_SIZE ? config_get(fn, where, size) : 0;
	return PCIBIOS_SUCCESSFUL;
}

/* A BAR keeps the address bits above its size and its type bits, which is how its size is found out. */
static bool config_write_bar(struct function *fn, int where, u32 value)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fn->bars); i++) {
		const struct bar *bar = &fn->bars[i];
		int low = PCI_BASE_ADDRESS_0 + 4 * bar->index;
		u64 mask = ~(bar->size - 1);

		if (!bar->size || (where != low && where != low + 4))
			continue;
		if (where == low)
			value = (value & lower_32_bits(mask)) |
				PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
		else
			value &= upper_32_bits(mask);
		config_set(fn, where, 4, value);
		return true;
	}
	return false;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct function *fn = function_of(bus, devfn);

	if (!fn)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (size == 4 && config_write_bar(fn, where, value))
		return PCIBIOS_SUCCESSFUL;
	if (where == PCI_COMMAND || where == PCI_INTERRUPT_LINE || where == PCI_CACHE_LINE_SIZE ||
	    where == PCI_LATENCY_TIMER || where == PCIE_CAP_OFFSET + PCI_EXP_DEVCTL)
		config_set(fn, where, min(size, 2), value);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read = config_read,
	.write = config_write,
};

/* An endpoint on a link of 16 lanes; 16 GT/s up to gfx90a, 32 GT/s from gfx942 on. */
static void fill_pcie_cap(struct function *fn, const struct sim_node *node)
{
	u32 speed = node->prop[SIM_PROP_gfx_target_version] / 100 == 904 ? PCI_EXP_LNKCAP_SLS_32_0GB :
									   PCI_EXP_LNKCAP_SLS_16_0GB;
	int cap = PCIE_CAP_OFFSET;

	config_set(fn, PCI_STATUS, 2, PCI_STATUS_CAP_LIST);
	config_set(fn, PCI_CAPABILITY_LIST, 1, cap);
	config_set(fn, cap + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP);
	config_set(fn, cap + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	/* 1: payloads of 256 bytes */
	config_set(fn, cap + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_EXT_TAG | PCI_EXP_DEVCAP_RBER | 1);
	config_set(fn, cap + PCI_EXP_LNKCAP, 4, speed | 16 << 4);
	config_set(fn, cap + PCI_EXP_LNKSTA, 2, speed | 16 << 4);
	config_set(fn, cap + PCI_EXP_DEVCAP2, 4, PCI_EXP_DEVCAP2_ATOMIC_COMP32 | PCI_EXP_DEVCAP2_ATOMIC_COMP64);
	config_set(fn, cap + PCI_EXP_LNKCTL2, 2, speed);
}

static void fill_config(struct function *fn, const struct sim_node *node)
{
	config_set(fn, PCI_VENDOR_ID, 2, node->prop[SIM_PROP_vendor_id]);
	config_set(fn, PCI_DEVICE_ID, 2, node->prop[SIM_PROP_device_id]);
	config_set(fn, PCI_CLASS_REVISION, 4, node->pci_class << 8 | (node->pci_revision & 0xff));
	config_set(fn, PCI_SUBSYSTEM_VENDOR_ID, 2, node->subsystem_vendor);
	config_set(fn, PCI_SUBSYSTEM_ID, 2, node->subsystem_device);
	fill_pcie_cap(fn, node);
}

/* Without a free range of that size below the end of the physical addresses the BAR is left out. */
static void add_bar(struct function *fn, unsigned int slot, unsigned int index, u64 size)
{
	struct bar *bar = &fn->bars[slot];
	resource_size_t last = (1ULL << boot_cpu_data.x86_phys_bits) - 1;

	size = roundup_pow_of_two(size);
	bar->index = index;
	bar->res.name = "kfdsim BAR";
	bar->res.flags = IORESOURCE_MEM;
	if (allocate_resource(&iomem_resource, &bar->res, size, SZ_4G, last, size, NULL, NULL))
		return;
	bar->size = size;
	config_set(fn, PCI_BASE_ADDRESS_0 + 4 * index, 4,
		   lower_32_bits(bar->res.start) | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	config_set(fn, PCI_BASE_ADDRESS_1 + 4 * index, 4, upper_32_bits(bar->res.start));
}

/* ---- functions and buses ---- */

static void function_free(struct function *fn)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fn->bars); i++)
		if (fn->bars[i].size)
			release_resource(&fn->bars[i].res);
	list_del(&fn->link);
	kfree(fn);
}

static struct root_bus *bus_find(unsigned int domain, unsigned int nr)
{
	struct root_bus *root;

	list_for_each_entry(root, &buses, link)
		if (root->sysdata.domain == domain && root->nr == nr)
			return root;
	return NULL;
}

static struct root_bus *bus_find_or_new(const struct sim_node *node)
{
	struct root_bus *root = bus_find(node->pci_domain, node->pci_bus);

	if (root)
		return root;
	root = kzalloc(sizeof(*root), GFP_KERNEL);
	if (!root)
		return NULL;
	root->sysdata.domain = node->pci_domain;
	root->sysdata.node = NUMA_NO_NODE;
	root->nr = node->pci_bus;
	INIT_LIST_HEAD(&root->functions);
	list_add_tail(&root->link, &buses);
	return root;
}

/* Partitions share the PCI function of the first one. */
static int function_new(const struct sim_node *node)
{
	struct root_bus *root = bus_find_or_new(node);
	struct function *fn = kzalloc(sizeof(*fn), GFP_KERNEL);

	if (!root || !fn) {
		kfree(fn);
		return -ENOMEM;
	}
	fn->devfn = node->pci_devfn;
	fn->iommu = node->iommu;
	fill_config(fn, node);
	if (node->bar_size)
		add_bar(fn, 0, BAR_VRAM, node->bar_size * node->nr_partitions);
	add_bar(fn, 1, BAR_DOORBELL, DOORBELL_BAR_BYTES);
	list_add_tail(&fn->link, &root->functions);
	return 0;
}

/* A GPU cannot go before the module: without this file nobody can take its PCI device away. */
static void forbid_removal(struct pci_dev *pdev)
{
	static const struct attribute remove = { .name = "remove" };

	sysfs_remove_file(&pdev->dev.kobj, &remove);
}

/* A group without an address space: sysfs shows it, and nothing else asks. A driver's probing would. */
static int add_iommu_group(struct function *fn)
{
	struct iommu_group *group = iommu_group_alloc();
	int err;

	if (IS_ERR(group))
		return PTR_ERR(group);
	err = iommu_group_add_device(group, &fn->pdev->dev);
	iommu_group_put(group);
	return err;
}

static void remove_iommu_groups(struct root_bus *root)
{
	struct function *fn;

	list_for_each_entry(fn, &root->functions, link)
		if (fn->pdev && device_iommu_mapped(&fn->pdev->dev))
			iommu_group_remove_device(&fn->pdev->dev);
}

static int bus_scan(struct root_bus *root)
{
	struct function *fn;
	LIST_HEAD(resources);
	int err = 0;

	root->bus = pci_create_root_bus(NULL, root->nr, &config_ops, &root->sysdata, &resources);
	if (!root->bus) {
		pr_err("kfdsim: PCI bus %04x:%02x cannot be created: does this machine have one already? Give other "
		       "addresses by \"pci = ...\"\n", root->sysdata.domain, root->nr);
		return -EBUSY;
	}
	list_for_each_entry(fn, &root->functions, link)
		fn->pdev = pci_scan_single_device(root->bus, fn->devfn);
	pci_bus_add_devices(root->bus);
	list_for_each_entry(fn, &root->functions, link)
		if (fn->pdev)
			forbid_removal(fn->pdev);
	list_for_each_entry(fn, &root->functions, link)
		if (fn->pdev && fn->iommu && !err)
			err = add_iommu_group(fn);
	return err;
}

/* ---- driver ---- */

/* Imported buffers are mapped for this device: with a smaller mask they would be copied aside. */
static int driver_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int err;

	if (pdev->bus->ops != &config_ops)
		return -ENODEV;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(48));
	if (err)
		return err;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	pci_write_config_word(pdev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	return 0;
}

static const struct pci_device_id driver_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_ATI, PCI_ANY_ID) },
	{}
};

static struct pci_driver driver = {
	.name = "amdgpu",
	.id_table = driver_ids,
	.probe = driver_probe,
	.driver = { .suppress_bind_attrs = true },
};

static int amdgpu_driver_init(void)
{
	int err = pci_register_driver(&driver);

	if (err)
		pr_err("kfdsim: the PCI driver \"amdgpu\" cannot be registered (error %d): is the real one loaded? "
		       "Unload it\n", err);
	driver_registered = !err;
	return err;
}

/* ---- all of them ---- */

struct device *sim_pci_device(const struct sim_node *node)
{
	struct root_bus *root = bus_find(node->pci_domain, node->pci_bus);
	struct function *fn = root && root->bus ? function_of(root->bus, node->pci_devfn) : NULL;

	return fn && fn->pdev ? &fn->pdev->dev : NULL;
}

static int functions_new(const struct sim_desc *desc)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < desc->nr_nodes && !err; i++)
		if (desc->nodes[i].is_gpu && desc->nodes[i].partition == 0)
			err = function_new(&desc->nodes[i]);
	return err;
}

int sim_pci_init(const struct sim_desc *desc)
{
	struct root_bus *root;
	int err = amdgpu_driver_init();

	if (!err)
		err = functions_new(desc);
	pci_lock_rescan_remove();
	list_for_each_entry(root, &buses, link)
		if (!err)
			err = bus_scan(root);
	pci_unlock_rescan_remove();
	if (err)
		sim_pci_fini();
	return err;
}

void sim_pci_fini(void)
{
	struct root_bus *root, *next_root;
	struct function *fn, *next_fn;

	list_for_each_entry_safe(root, next_root, &buses, link) {
		pci_lock_rescan_remove();
		if (root->bus) {
			remove_iommu_groups(root);
			pci_stop_root_bus(root->bus);
			pci_remove_root_bus(root->bus);
		}
		pci_unlock_rescan_remove();
		list_for_each_entry_safe(fn, next_fn, &root->functions, link)
			function_free(fn);
		list_del(&root->link);
		kfree(root);
	}
	if (driver_registered)
		pci_unregister_driver(&driver);
	driver_registered = false;
}
