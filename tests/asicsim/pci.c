// SPDX-License-Identifier: GPL-2.0-only
/*
 * asicsim_pci.ko: PCI functions that look like AMD GPUs, each on a root bus of its own. VRAM (BAR 0), doorbells (BAR 2)
 * and registers (BAR 5) are memory that the kernel was told not to use (memmap=SIZE$BASE), so that everything that
 * driver and user space do with a BAR works by itself. The interrupt is a number without hardware behind it; the chip
 * raises it with generic_handle_irq().
 *
 * A GPU is one element of the parameter "gpus": nine numbers with colons between,
 * DOMAIN:BUS:DEVICE_ID:VRAM_MIB:RENDER_MINOR:HIVE_SIZE:UNIQUE_ID:PARTITION_MODE:IOMMU. The first GPU of a hive is
 * followed by the rest of it.
 */
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "pci_config.h"

#define PCIE_CAP       0x64
#define REGISTER_BYTES SZ_8M /* a real chip has 512 KiB, and an index register for what does not fit */
#define DOORBELL_BYTES SZ_2M
#define LOW_BYTES      SZ_16M /* of both, for one GPU: BAR 5 has no upper half */
#define MAX_GPUS       8
#define MAX_HOLDERS    64

static char *gpus[MAX_GPUS];
static int nr_gpus;
module_param_array(gpus, charp, &nr_gpus, 0444);
MODULE_PARM_DESC(gpus,
		 "DOMAIN:BUS:DEVICE_ID:VRAM_MIB:RENDER_MINOR:HIVE_SIZE:UNIQUE_ID:PARTITION_MODE:IOMMU of each GPU");
static ulong vram_base;
module_param(vram_base, ulong, 0444);
MODULE_PARM_DESC(vram_base, "address of the memory that is VRAM");
static ulong vram_mib;
module_param(vram_mib, ulong, 0444);
MODULE_PARM_DESC(vram_mib, "how much memory there is for VRAM");
static ulong low_base;
module_param(low_base, ulong, 0444);
MODULE_PARM_DESC(low_base, "address of memory below 4 GiB that is registers and doorbells, 16 MiB for each GPU");

struct bar {
	unsigned int index;
	u64 start, size;
	bool wide;
};

enum { BAR_VRAM, BAR_DOORBELLS, BAR_REGISTERS, NR_BARS };

struct gpu {
	struct pci_sysdata sysdata; /* first */
	u8 config[256];
	struct bar bars[NR_BARS];
	struct resource windows[NR_BARS]; /* of the root bus: an IOMMU gives no addresses in them */
	struct pci_bus *bus;
	unsigned int bus_number, device_id, vram_mib, render_minor, hive_size, hive_index;
	unsigned int partition_mode, iommu;
	u64 unique_id;
	int irq;
};

static struct gpu *all[MAX_GPUS];

static void set(struct gpu *g, int where, int size, u32 value)
{
	memcpy(g->config + where, &value, size);
}

/* ---- configuration space ---- */

static struct gpu *gpu_of(struct pci_bus *bus)
{
	return container_of(bus->sysdata, struct gpu, sysdata);
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct gpu *g = gpu_of(bus);

	*value = ~0U;
	if (devfn)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	if (where + size <= sizeof(g->config))
		memcpy(value, g->config + where, size);
	return PCIBIOS_SUCCESSFUL;
}

/* A BAR keeps the bits of its size at 0, by which the kernel finds out how large it is. True: it was one. */
static bool write_bar(struct gpu *g, const struct bar *bar, int where, u32 value)
{
	int low = PCI_BASE_ADDRESS_0 + 4 * bar->index;
	u64 mask = ~(bar->size - 1);

	if (where == low) {
		value &= lower_32_bits(mask);
		if (bar->wide)
			value |= PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
	} else if (where == low + 4 && bar->wide) {
		value &= upper_32_bits(mask);
	} else {
		return false;
	}
	set(g, where, 4, value);
	return true;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct gpu *g = gpu_of(bus);

	if (devfn)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (unsigned int i = 0; i < NR_BARS && size == 4; i++)
		if (write_bar(g, &g->bars[i], where, value))
			return PCIBIOS_SUCCESSFUL;
	switch (where) {
	case PCI_COMMAND:
	case PCI_INTERRUPT_LINE:
	case PCI_CACHE_LINE_SIZE:
	case PCIE_CAP + PCI_EXP_DEVCTL:
	case PCIE_CAP + PCI_EXP_DEVCTL2:
		set(g, where, min(size, 2), value);
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops ops = { .read = config_read, .write = config_write };

static void set_bar(struct gpu *g, unsigned int which, unsigned int index, u64 start, u64 size)
{
	struct bar *bar = &g->bars[which];

	*bar = (struct bar){ .index = index, .start = start, .size = size, .wide = index != 5 };
	write_bar(g, bar, PCI_BASE_ADDRESS_0 + 4 * index, lower_32_bits(start));
	if (bar->wide)
		write_bar(g, bar, PCI_BASE_ADDRESS_0 + 4 * index + 4, upper_32_bits(start));
}

static void set_pcie(struct gpu *g)
{
	set(g, PCI_STATUS, 2, PCI_STATUS_CAP_LIST);
	set(g, PCI_CAPABILITY_LIST, 1, PCIE_CAP);
	set(g, PCIE_CAP + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP);
	set(g, PCIE_CAP + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	set(g, PCIE_CAP + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_EXT_TAG | PCI_EXP_DEVCAP_RBER | 1);
	set(g, PCIE_CAP + PCI_EXP_LNKCAP, 4, PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4);
	set(g, PCIE_CAP + PCI_EXP_LNKSTA, 2, PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4);
	set(g, PCIE_CAP + PCI_EXP_DEVCAP2, 4, PCI_EXP_DEVCAP2_ATOMIC_COMP32 | PCI_EXP_DEVCAP2_ATOMIC_COMP64);
}

static void set_config(struct gpu *g)
{
	struct asicsim_config own = {
		.unique_id_lo = lower_32_bits(g->unique_id),
		.unique_id_hi = upper_32_bits(g->unique_id),
		.hive_size = g->hive_size,
		.hive_index = g->hive_index,
		.partition_mode = g->partition_mode,
		.iommu = g->iommu,
	};

	set(g, PCI_VENDOR_ID, 2, PCI_VENDOR_ID_ATI);
	set(g, PCI_DEVICE_ID, 2, g->device_id);
	set(g, PCI_CLASS_REVISION, 4, PCI_CLASS_DISPLAY_OTHER << 16 | 1);
	set(g, PCI_SUBSYSTEM_VENDOR_ID, 2, PCI_VENDOR_ID_ATI);
	set(g, PCI_SUBSYSTEM_ID, 2, 0x0c34);
	set_pcie(g);
	memcpy(g->config + ASICSIM_CONFIG_AT, &own, sizeof(own));
}

/* ---- minors: others hold those that come before the one that a GPU is to get, until all GPUs are there ---- */

static const struct drm_driver holder_driver = { .driver_features = DRIVER_RENDER, .name = "asicsim" };
static struct drm_device *holders[MAX_HOLDERS];
static unsigned int nr_holders;

static void release_minors(void)
{
	while (nr_holders)
		drm_dev_put(holders[--nr_holders]);
}

static int hold_minors_before(struct gpu *g)
{
	struct drm_device *ddev;
	int index;

	while (g->render_minor) {
		ddev = drm_dev_alloc(&holder_driver, &g->bus->dev);
		if (IS_ERR(ddev))
			return PTR_ERR(ddev);
		index = ddev->render->index;
		if (index >= g->render_minor || nr_holders == MAX_HOLDERS) {
			drm_dev_put(ddev);
			if (index == g->render_minor)
				return 0;
			pr_err("asicsim_pci: render minor %u cannot be had: the next one is %d\n", g->render_minor,
			       index);
			return -EBUSY;
		}
		holders[nr_holders++] = ddev;
	}
	return 0;
}

/* ---- devices ---- */

/* What was there before does not come back with a new device. */
static int clear(u64 start, u64 size)
{
	void *at = memremap(start, size, MEMREMAP_WC);

	if (!at)
		return -ENOMEM;
	memset(at, 0, size);
	memunmap(at);
	return 0;
}

static int get_irq(struct gpu *g)
{
	g->irq = irq_alloc_desc(NUMA_NO_NODE);
	if (g->irq < 0)
		return g->irq;
	irq_set_chip_and_handler(g->irq, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(g->irq, IRQ_NOREQUEST | IRQ_NOPROBE);
	return 0;
}

static int add_device(struct gpu *g)
{
	struct pci_dev *pdev = pci_scan_single_device(g->bus, 0);
	int err;

	if (!pdev)
		return -ENODEV;
	for (unsigned int i = 0; i < NR_BARS; i++) {
		err = pci_claim_resource(pdev, g->bars[i].index);
		if (err)
			return err;
	}
	pdev->irq = g->irq;
	err = hold_minors_before(g);
	if (!err)
		pci_bus_add_devices(g->bus);
	return err;
}

static int gpu_add(struct gpu *g)
{
	LIST_HEAD(resources);
	int err = clear(g->bars[BAR_DOORBELLS].start, LOW_BYTES - REGISTER_BYTES) ?:
		  clear(g->bars[BAR_REGISTERS].start, REGISTER_BYTES) ?: get_irq(g);

	if (err)
		return err;
	for (unsigned int i = 0; i < NR_BARS; i++) {
		g->windows[i] = DEFINE_RES_MEM_NAMED(g->bars[i].start, g->bars[i].size, "asicsim");
		pci_add_resource(&resources, &g->windows[i]);
	}
	pci_lock_rescan_remove();
	g->bus = pci_create_root_bus(NULL, g->bus_number, &ops, &g->sysdata, &resources);
	err = g->bus ? add_device(g) : -EBUSY;
	pci_unlock_rescan_remove();
	return err;
}

static void gpu_free(struct gpu *g)
{
	if (g->bus) {
		pci_lock_rescan_remove();
		pci_stop_root_bus(g->bus);
		pci_remove_root_bus(g->bus);
		pci_unlock_rescan_remove();
	}
	if (g->irq > 0)
		irq_free_desc(g->irq);
	kfree(g);
}

static int gpu_parse(struct gpu *g, const char *text)
{
	unsigned int domain;

	if (sscanf(text, "%x:%x:%x:%u:%u:%u:%llx:%u:%u", &domain, &g->bus_number, &g->device_id, &g->vram_mib,
		   &g->render_minor, &g->hive_size, &g->unique_id, &g->partition_mode, &g->iommu) != 9 ||
	    !is_power_of_2(g->vram_mib) || g->vram_mib < 256) {
		pr_err("asicsim_pci: '%s' does not describe a GPU with a power of two of at least 256 MiB\n", text);
		return -EINVAL;
	}
	g->sysdata.domain = domain;
	g->sysdata.node = NUMA_NO_NODE;
	return 0;
}

/* GPU @i, whose VRAM comes after @vram_end; what is said of a hive goes for those that follow the first of it. */
static int gpu_new(unsigned int i, u64 *vram_end)
{
	struct gpu *g = kzalloc(sizeof(*g), GFP_KERNEL);
	u64 low = low_base + i * LOW_BYTES, vram;
	int err;

	if (!g)
		return -ENOMEM;
	all[i] = g;
	err = gpu_parse(g, gpus[i]);
	if (err)
		return err;
	if (g->hive_size && i && all[i - 1]->hive_size && all[i - 1]->hive_index + 1 < g->hive_size)
		g->hive_index = all[i - 1]->hive_index + 1;
	set_config(g);
	vram = (u64)g->vram_mib * SZ_1M;
	*vram_end = round_up(*vram_end, vram);
	set_bar(g, BAR_VRAM, 0, *vram_end, vram);
	set_bar(g, BAR_REGISTERS, 5, low, REGISTER_BYTES);
	set_bar(g, BAR_DOORBELLS, 2, low + REGISTER_BYTES, DOORBELL_BYTES);
	*vram_end += vram;
	if (*vram_end > vram_base + vram_mib * SZ_1M) {
		pr_err("asicsim_pci: %lu MiB of memory are not enough for the VRAM of the first %u GPUs\n", vram_mib,
		       i + 1);
		return -ENOMEM;
	}
	return 0;
}

static void asicsim_pci_exit(void)
{
	release_minors();
	for (unsigned int i = 0; i < MAX_GPUS; i++)
		if (all[i])
			gpu_free(all[i]);
}

static int __init asicsim_pci_init(void)
{
	u64 vram_end = vram_base;
	int err = vram_base && low_base ? 0 : -EINVAL;

	for (int i = 0; i < nr_gpus && !err; i++)
		err = gpu_new(i, &vram_end);
	for (int i = 0; i < nr_gpus && !err; i++)
		err = gpu_add(all[i]);
	if (err)
		asicsim_pci_exit();
	else
		release_minors();
	return err;
}

module_init(asicsim_pci_init);
module_exit(asicsim_pci_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("PCI functions of simulated AMD GPUs");
