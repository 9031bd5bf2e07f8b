// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address translation, as the memory hubs do it, by the page tables that the driver wrote: VMID 0 knows VRAM, the GART
 * and the AGP aperture; every other VMID has four levels of 512 entries. Nothing is cached, so that errors of missing
 * TLB flushes cannot be seen.
 */
#include <linux/iommu.h>
#include <linux/minmax.h>
#include <linux/pfn.h>

#include "chip.h"
#include "amdgpu_vm.h"

#define ADDRESS_MASK 0xffffffffffffULL /* 48 bits of address, in an entry and in a page table's index */

const struct chip_vm chip_kernel_vm;

/* Kernel address of a byte of the hive's VRAM; NULL: there is none. */
static void *vram_at(struct chip *chip, u64 offset)
{
	u64 segment = chip->adev->gmc.xgmi.node_segment_size;

	if (segment) {
		chip = chip_of_segment(chip, offset / segment);
		if (!chip)
			return NULL;
		offset %= segment;
	}
	return offset < chip->vram_size ? chip->vram + offset : NULL;
}

/* The device's address @addr may be that of an IOMMU. */
static void *system_at(struct chip *chip, u64 addr)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(chip->adev->dev);
	u64 phys = domain && iommu_is_dma_domain(domain) ? iommu_iova_to_phys(domain, addr) : addr;

	if (!pfn_valid(PHYS_PFN(phys)) || !page_is_ram(PHYS_PFN(phys))) {
		pr_debug("asicsim: no system memory at %#llx\n", addr);
		return NULL;
	}
	return __va(phys);
}

static void *pte_at(struct chip *chip, u64 pte, u64 offset, u64 bits)
{
	u64 addr = (pte & ADDRESS_MASK & ~0xfffULL) + offset;

	if (~pte & (bits | AMDGPU_PTE_VALID)) {
		pr_debug("asicsim: a page without bits %#llx: %#llx\n", bits, pte);
		return NULL;
	}
	return pte & AMDGPU_PTE_SYSTEM ? system_at(chip, addr) : vram_at(chip, addr);
}

static void *walk_kernel(struct chip *chip, u64 va, u64 bits)
{
	struct amdgpu_gmc *gmc = &chip->adev->gmc;
	const u64 *table = (void __force *)chip->adev->gart.ptr;

	if (va >= gmc->fb_start && va <= (gmc->fb_end | 0xffffff))
		return vram_at(chip, va - gmc->fb_start);
	if (va >= gmc->gart_start && va <= gmc->gart_end && table)
		return pte_at(chip, READ_ONCE(table[(va - gmc->gart_start) >> 12]), va & 0xfff, bits);
	if (va >= gmc->agp_start && va <= gmc->agp_end)
		return system_at(chip, va - gmc->agp_start);
	return NULL;
}

static void *walk_tables(struct chip *chip, u64 pd, u64 va, u64 bits)
{
	u64 entry = pd;

	va &= ADDRESS_MASK;
	for (int shift = 39; shift >= 12; shift -= 9) {
		u64 addr = entry & ADDRESS_MASK & ~0x3fULL, *table;

		if (!(entry & AMDGPU_PTE_VALID))
			return NULL;
		table = entry & AMDGPU_PTE_SYSTEM ? system_at(chip, addr) : vram_at(chip, addr);
		if (!table)
			return NULL;
		entry = READ_ONCE(table[(va >> shift) & 0x1ff]);
		if (shift == 12 || (entry & AMDGPU_PDE_PTE))
			return pte_at(chip, entry, va & (BIT_ULL(shift) - 1), bits);
	}
	return NULL;
}

void *chip_walk(struct chip *chip, const struct chip_vm *vm, u64 va, u64 bits)
{
	return vm->vmid ? walk_tables(chip, vm->pd, va, bits) : walk_kernel(chip, va, bits);
}

static void *walk(struct chip *chip, const struct chip_vm *vm, u64 va, bool write)
{
	return chip_walk(chip, vm, va, AMDGPU_PTE_READABLE | (write ? AMDGPU_PTE_WRITEABLE : 0));
}

/* What the access of a page ends at that is not there: the driver's dummy page, or nothing. */
static void *walk_failed(struct chip *chip, const struct chip_vm *vm, u64 va, u64 *fault)
{
	if (fault)
		*fault = va;
	return vm->default_page ? system_at(chip, chip->adev->dummy_page_addr + (va & ~PAGE_MASK)) : NULL;
}

static int access(struct chip *chip, const struct chip_vm *vm, u64 va, void *buffer, size_t len, bool write, u64 *fault)
{
	unsigned long flags;
	size_t n;
	void *at;

	for (; len; len -= n, va += n, buffer += n) {
		n = min_t(size_t, len, PAGE_SIZE - (va & ~PAGE_MASK));
		spin_lock_irqsave(&chip->walk_lock, flags);
		at = walk(chip, vm, va, write) ?: walk_failed(chip, vm, va, fault);
		if (at && write)
			memcpy(at, buffer, n);
		else if (at)
			memcpy(buffer, at, n);
		spin_unlock_irqrestore(&chip->walk_lock, flags);
		if (!at)
			return -EFAULT;
	}
	return 0;
}

int chip_read(struct chip *chip, const struct chip_vm *vm, u64 va, void *to, size_t len, u64 *fault)
{
	return access(chip, vm, va, to, len, false, fault);
}

int chip_write(struct chip *chip, const struct chip_vm *vm, u64 va, const void *from, size_t len, u64 *fault)
{
	return access(chip, vm, va, (void *)from, len, true, fault);
}

int chip_copy(struct chip *chip, const struct chip_vm *vm, u64 dst, u64 src, u64 len, u64 *fault)
{
	unsigned long flags;
	void *from, *to;
	u64 n;

	for (; len; len -= n, dst += n, src += n) {
		n = min3(len, PAGE_SIZE - (src & ~PAGE_MASK), PAGE_SIZE - (dst & ~PAGE_MASK));
		spin_lock_irqsave(&chip->walk_lock, flags);
		from = walk(chip, vm, src, false) ?: walk_failed(chip, vm, src, fault);
		to = walk(chip, vm, dst, true) ?: walk_failed(chip, vm, dst, fault);
		if (from && to)
			memcpy(to, from, n);
		spin_unlock_irqrestore(&chip->walk_lock, flags);
		if (!from || !to)
			return -EFAULT;
	}
	return 0;
}
