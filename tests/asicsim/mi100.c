// SPDX-License-Identifier: GPL-2.0-only
/* A GPU like the AMD Instinct MI100 (Arcturus, gfx908): what tells it from others. All registers are memory. */
#include <linux/pci.h>

#include "chip.h"
#include "arct_ip_offset.h"
#include "hdp_v4_0.h"
#include "nbio_v7_4.h"
#include "soc15.h"
#include "soc15_common.h"
#include "soc15_ih_clientid.h"
#include "nbio/nbio_7_4_offset.h"
#include "mmhub/mmhub_9_4_1_offset.h"
/* Both hubs have registers of these names; those of the graphics hub are meant. */
#undef mmMC_VM_XGMI_LFB_CNTL
#undef mmMC_VM_XGMI_LFB_SIZE
#include "gc/gc_9_2_1_offset.h"
#include "gc/gc_9_2_1_sh_mask.h"

/* Where VRAM begins in the GPU's own address space, in units of 16 MiB. */
#define FB_BASE 0x8000

static int set_ip_versions(struct amdgpu_device *adev)
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
	return 0;
}

static void preset_registers(struct amdgpu_device *adev, const struct asicsim_config *config)
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

static u32 sdma_client(unsigned int engine)
{
	static const u32 clients[] = {
		SOC15_IH_CLIENTID_SDMA0, SOC15_IH_CLIENTID_SDMA1, SOC15_IH_CLIENTID_SDMA2, SOC15_IH_CLIENTID_SDMA3,
		SOC15_IH_CLIENTID_SDMA4, SOC15_IH_CLIENTID_SDMA5, SOC15_IH_CLIENTID_SDMA6, SOC15_IH_CLIENTID_SDMA7,
	};

	return clients[engine];
}

const struct chip_model model_mi100 = {
	.device_id = 0x738c,
	.type = CHIP_ARCTURUS,
	.nr_engines = 8,
	.cus_of_engine = 0x7fff,
	.lds_kib = 64,
	.sdma_block = &chip_sdma4_0_block,
	.sdma_count = GENMASK(21, 0),
	.set_ip_versions = set_ip_versions,
	.preset_registers = preset_registers,
	.init_doorbell_index = vega20_doorbell_index_init,
	.sdma_client = sdma_client,
};
