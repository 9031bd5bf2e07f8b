/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the simulated PCI function (pci.c) tells the chip below the driver (model.c), in the part of configuration
 * space that is the device's own. It is what a real chip has in fuses, or hears from its firmware.
 */
#ifndef ASICSIM_PCI_CONFIG_H
#define ASICSIM_PCI_CONFIG_H

#include <linux/types.h>

#define ASICSIM_CONFIG_AT 0xc0

struct asicsim_config {
	u32 unique_id_lo, unique_id_hi;
	u16 hive_size;	/* GPUs that are joined by XGMI, 0 without a hive */
	u16 hive_index; /* which of them this one is: its VRAM is the so-manieth segment of the hive's memory */
	u32 partition_mode; /* AMDGPU_SPX_PARTITION_MODE ..., where the chip has several XCCs */
	u32 iommu;	    /* 1: one translates for it (iommu.c) */
};

#endif
