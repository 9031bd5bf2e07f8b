// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of GPUs. amdgpu_discovery_set_ip_blocks() is the place where the driver learns which IP blocks a chip has; the
 * file that defines it is left out, and this one takes its place. What the video BIOS and firmware would have left
 * in registers is written here, too: all registers are memory.
 */
#include <linux/pci.h>

#include "chip.h"
#include "arct_ip_offset.h"
#include "hdp_v4_0.h"
#include "nbio_v7_4.h"
#include "soc15.h"
#include "soc15_common.h"
#include "nbio/nbio_7_4_offset.h"
#include "mmhub/mmhub_9_4_1_offset.h"
/* Both hubs have registers of these names; those of the graphics hub are meant. */
#undef mmMC_VM_XGMI_LFB_CNTL
#undef mmMC_VM_XGMI_LFB_SIZE
#include "gc/gc_9_2_1_offset.h"
#include "gc/gc_9_2_1_sh_mask.h"

/* Where VRAM begins in the GPU's own address space, in units of 16 MiB. */
#define FB_BASE 0x8000

static void arcturus_set_ip_versions(struct amdgpu_device *adev)
{
	arct_reg_base_init(adev);
	adev->sdma.num_instances = 8;
	adev->sdma.sdma_mask = 0xff;
	adev->gmc.num_umc = 8;
	adev->gfx.xcc_mask = 1;
	adev->ip_versions[MMHUB_HWIP][0] = IP_VERSION(9, 4, 1);
	adev->ip_versions[ATHUB_HWIP][0] = IP_VERSION(9, 4, 1);
	adev->ip_versions[OSSSYS_HWIP][0] = IP_VERSION(4, 2, 1);
	adev->ip_versions[HDP_HWIP][0] = IP_VERSION(4, 2, 1);
	adev->ip_versions[SDMA0_HWIP][0] = IP_VERSION(4, 2, 2);
	adev->ip_versions[DF_HWIP][0] = IP_VERSION(3, 6, 1);
	adev->ip_versions[NBIO_HWIP][0] = IP_VERSION(7, 4, 1);
	adev->ip_versions[MP0_HWIP][0] = IP_VERSION(11, 0, 4);
	adev->ip_versions[MP1_HWIP][0] = IP_VERSION(11, 0, 2);
	adev->ip_versions[GC_HWIP][0] = IP_VERSION(9, 4, 1);
	adev->nbio.funcs = &nbio_v7_4_funcs;
	adev->nbio.hdp_flush_reg = &nbio_v7_4_hdp_flush_reg;
	adev->hdp.funcs = &hdp_v4_0_funcs;
	adev->family = AMDGPU_FAMILY_AI;
}

static void arcturus_preset_registers(struct amdgpu_device *adev, const struct asicsim_config *config)
{
	u64 vram = pci_resource_len(adev->pdev, 0);
	u32 hive;

	WREG32_SOC15(NBIO, 0, mmRCC_CONFIG_MEMSIZE, vram >> 20);
	WREG32_SOC15(MMHUB, 0, mmVMSHAREDVC0_MC_VM_FB_LOCATION_BASE, FB_BASE);
	WREG32_SOC15(MMHUB, 0, mmVMSHAREDVC0_MC_VM_FB_LOCATION_TOP,
		     FB_BASE + max_t(u32, config->hive_size, 1) * (vram >> 24) - 1);
	if (!config->hive_size)
		return;
	hive = REG_SET_FIELD(0, MC_VM_XGMI_LFB_CNTL, PF_MAX_REGION, config->hive_size - 1);
	hive = REG_SET_FIELD(hive, MC_VM_XGMI_LFB_CNTL, PF_LFB_REGION, config->hive_index);
	WREG32_SOC15(GC, 0, mmMC_VM_XGMI_LFB_CNTL, hive);
	WREG32_SOC15(GC, 0, mmMC_VM_XGMI_LFB_SIZE, vram >> 24);
}

static const struct chip_model models[] = {
	{ 0x738c, arcturus_set_ip_versions, arcturus_preset_registers },
};

const struct chip_model *chip_model_of(struct amdgpu_device *adev)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].device_id == adev->pdev->device)
			return &models[i];
	return NULL;
}

int amdgpu_discovery_set_ip_blocks(struct amdgpu_device *adev)
{
	static const struct amdgpu_ip_block_version *const blocks[] = {
		&chip_common_block, &chip_gmc_block, &chip_ih_block, &chip_gfx_block, &chip_sdma_block,
	};
	static struct amd_pm_funcs no_pm_funcs;
	const struct chip_model *model = chip_model_of(adev);
	int err = 0;

	if (!model) {
		dev_err(adev->dev, "asicsim: no model of the device %#x\n", adev->pdev->device);
		return -ENODEV;
	}
	model->set_ip_versions(adev);
	adev->powerplay.pp_funcs = &no_pm_funcs;
	/* No firmware is loaded by the driver, and none is by the PSP, which there is not. Its buffer must have a size.
	 */
	adev->firmware.load_type = AMDGPU_FW_LOAD_PSP;
	adev->firmware.fw_size = PAGE_SIZE;
	for (unsigned int i = 0; i < ARRAY_SIZE(blocks) && !err; i++)
		err = amdgpu_device_ip_block_add(adev, blocks[i]);
	return err;
}

/* There is none: nothing to post, no tables. */
bool amdgpu_get_bios(struct amdgpu_device *adev)
{
	return true;
}

/* Data, which a stub cannot be. */
static struct attribute *no_attributes[] = { NULL };
const struct attribute_group amdgpu_flash_attr_group = { .attrs = no_attributes };
