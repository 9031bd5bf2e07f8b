// SPDX-License-Identifier: GPL-2.0-only
/*
 * In place of kfd_migrate.c where the kernel has no device-private memory: SVM works, and ranges stay in system memory,
 * which is what the driver falls back to. With the parameter asicsim_svm=0 there is no SVM, as in the distribution's
 * own build.
 */
#include "amdgpu.h"

#if !IS_ENABLED(CONFIG_DEVICE_PRIVATE)
#include "amdgpu_amdkfd.h"
#include "kfd_migrate.h"
#include "kfd_svm.h"

static bool asicsim_svm = true;
module_param(asicsim_svm, bool, 0444);
MODULE_PARM_DESC(asicsim_svm, "SVM, which the distribution's kernel leaves out");

int svm_migrate_to_vram(struct svm_range *prange, uint32_t best_loc, unsigned long start, unsigned long last,
			struct mm_struct *mm, uint32_t trigger)
{
	return -EOPNOTSUPP;
}

int svm_migrate_vram_to_ram(struct svm_range *prange, struct mm_struct *mm, unsigned long start, unsigned long last,
			    uint32_t trigger, struct page *fault_page)
{
	return 0;
}

unsigned long svm_migrate_addr_to_pfn(struct amdgpu_device *adev, unsigned long addr)
{
	return (addr + adev->kfd.pgmap.range.start) >> PAGE_SHIFT;
}

/* The type of the pages says that SVM is there. */
int kgd2kfd_init_zone_device(struct amdgpu_device *adev)
{
	if (asicsim_svm)
		adev->kfd.pgmap.type = MEMORY_DEVICE_PRIVATE;
	return 0;
}
#endif
