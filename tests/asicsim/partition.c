// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitions of a GPU with several XCCs: which XCC, SDMA engine and VMID belongs to which, and from where interrupts
 * come. On a die are an interrupt's nodes 0 (its SDMA engines), 1 and 2 (its XCCs), and the next die begins at 4.
 */
#include "chip.h"
#include "kfd_priv.h"

#define NODES_OF_DIE 4
#define XCCS_OF_DIE  2

unsigned int chip_xccs_of_partition(struct chip *chip)
{
	return max_t(unsigned int, chip->adev->gfx.num_xcc_per_xcp, 1);
}

unsigned int chip_partition_of(struct chip *chip, unsigned int xcc)
{
	return xcc / chip_xccs_of_partition(chip);
}

static unsigned int engines_of_die(struct chip *chip)
{
	return chip_model_of(chip->adev)->engines_of_die;
}

u32 chip_node_of_engine(struct chip *chip, unsigned int engine)
{
	return engines_of_die(chip) ? engine / engines_of_die(chip) * NODES_OF_DIE : 0;
}

u32 chip_node_of_xcc(struct chip *chip, unsigned int xcc)
{
	return engines_of_die(chip) ? xcc / XCCS_OF_DIE * NODES_OF_DIE + 1 + xcc % XCCS_OF_DIE : 0;
}

unsigned int chip_engine_of_partition(struct chip *chip, unsigned int xcc, unsigned int engine)
{
	unsigned int nr_partitions = NUM_XCC(chip->adev->gfx.xcc_mask) / chip_xccs_of_partition(chip);

	return chip_partition_of(chip, xcc) * (chip->adev->sdma.num_instances / nr_partitions) + engine;
}

u32 chip_vmid_of(struct chip *chip, unsigned int xcc, u32 pasid)
{
	struct kfd_dev *kfd = chip->adev->kfd.dev;
	const struct kfd_vmid_info *vmids = &kfd->nodes[chip_partition_of(chip, xcc)]->vm_info;

	return vmids->first_vmid_kfd + pasid % vmids->vmid_num_kfd;
}
