// SPDX-License-Identifier: GPL-2.0-only
/* A GPU like the AMD Instinct MI210 (Aldebaran, gfx90a), one die of an MI250: what tells it from others. */
#include <linux/pci.h>

#include "chip.h"
#include "nbio_v7_4.h"
#include "soc15.h"
#include "soc15_common.h"
#include "soc15_ih_clientid.h"
#include "gc/gc_9_2_1_offset.h"
#include "gc/gc_9_2_1_sh_mask.h"
#include "nbio/nbio_7_4_offset.h"

#define NR_ENGINES 5

/* Of mmhub/mmhub_1_7_offset.h, whose other names are those of the graphics hub. */
#define regMC_VM_FB_LOCATION_BASE	   0x0cc0
#define regMC_VM_FB_LOCATION_BASE_BASE_IDX 0
#define regMC_VM_FB_LOCATION_TOP	   0x0cc1
#define regMC_VM_FB_LOCATION_TOP_BASE_IDX  0

/* Of gfxhub_v1_1.c: of this chip alone, with an identifier of four bits. */
#define mmMC_VM_XGMI_LFB_CNTL_ALDE	    0x0978
#define mmMC_VM_XGMI_LFB_CNTL_ALDE_BASE_IDX 0
#define mmMC_VM_XGMI_LFB_SIZE_ALDE	    0x0979
#define mmMC_VM_XGMI_LFB_SIZE_ALDE_BASE_IDX 0
#define MAX_REGION_SHIFT		    4

/* Where VRAM begins in the GPU's own address space, in units of 16 MiB. */
#define FB_BASE 0x8000

static int set_ip_versions(struct amdgpu_device *adev)
{
	aldebaran_reg_base_init(adev);
	adev->sdma.num_instances = NR_ENGINES;
	adev->sdma.sdma_mask = GENMASK(NR_ENGINES - 1, 0);
	adev->gmc.num_umc = 4;
	adev->gfx.xcc_mask = 1;
	adev->ip_versions[MMHUB_HWIP][0] = IP_VERSION(9, 4, 2);
	adev->ip_versions[ATHUB_HWIP][0] = IP_VERSION(9, 4, 2);
	adev->ip_versions[OSSSYS_HWIP][0] = IP_VERSION(4, 4, 0);
	adev->ip_versions[HDP_HWIP][0] = IP_VERSION(4, 4, 0);
	for (unsigned int i = 0; i < NR_ENGINES; i++)
		adev->ip_versions[SDMA0_HWIP][i] = IP_VERSION(4, 4, 0);
	adev->ip_versions[DF_HWIP][0] = IP_VERSION(3, 6, 2);
	adev->ip_versions[NBIO_HWIP][0] = IP_VERSION(7, 4, 4);
	adev->ip_versions[MP0_HWIP][0] = adev->ip_versions[MP1_HWIP][0] = IP_VERSION(13, 0, 2);
	adev->ip_versions[GC_HWIP][0] = IP_VERSION(9, 4, 2);
	/* From here on firmware's tables say that. */
	adev->gmc.xgmi.supported = true;
	adev->nbio.funcs = &nbio_v7_4_funcs;
	adev->nbio.hdp_flush_reg = &nbio_v7_4_hdp_flush_reg;
	return 0;
}

static void preset_registers(struct amdgpu_device *adev, const struct asicsim_config *config)
{
	u64 vram = pci_resource_len(adev->pdev, 0);

	WREG32_SOC15(NBIO, 0, mmRCC_CONFIG_MEMSIZE, vram >> 20);
	WREG32_SOC15(MMHUB, 0, regMC_VM_FB_LOCATION_BASE, FB_BASE);
	WREG32_SOC15(MMHUB, 0, regMC_VM_FB_LOCATION_TOP,
		     FB_BASE + max_t(u32, config->hive_size, 1) * (vram >> 24) - 1);
	if (!config->hive_size)
		return;
	WREG32_SOC15(GC, 0, mmMC_VM_XGMI_LFB_CNTL_ALDE,
		     (config->hive_size - 1) << MAX_REGION_SHIFT | config->hive_index);
	WREG32_SOC15(GC, 0, mmMC_VM_XGMI_LFB_SIZE_ALDE, vram >> 24);
}

static u32 sdma_client(unsigned int engine)
{
	static const u32 clients[NR_ENGINES] = {
		SOC15_IH_CLIENTID_SDMA0, SOC15_IH_CLIENTID_SDMA1, SOC15_IH_CLIENTID_SDMA2, SOC15_IH_CLIENTID_SDMA3,
		SOC15_IH_CLIENTID_SDMA4,
	};

	return clients[engine];
}

const struct chip_model model_mi210 = {
	.device_id = 0x740f,
	.type = CHIP_ALDEBARAN,
	.nr_engines = 8,
	.cus_of_engine = 0x1fff,
	.lds_kib = 64,
	.sdma_block = &chip_sdma4_0_block,
	.sdma_count = GENMASK(29, 0),
	.set_ip_versions = set_ip_versions,
	.preset_registers = preset_registers,
	.init_doorbell_index = vega20_doorbell_index_init,
	.sdma_client = sdma_client,
};
