// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPUs like the AMD Instinct MI300X (Aqua Vanjaram, gfx942) and MI350X (gfx950): eight XCCs and sixteen SDMA engines,
 * which the driver takes to be on four dies and puts into partitions. Where registers are is made up, as a chip's
 * firmware would say it.
 */
#include <linux/pci.h>
#include <linux/sizes.h>

#include "chip.h"
#include "amdgpu_xcp.h"
#include "gfx_v9_4_3.h"
#include "nbio_v7_9.h"
#include "smuio_v13_0_3.h"
#include "soc15.h"
#include "soc15_common.h"
#include "soc15_ih_clientid.h"
#include "gc/gc_9_4_3_offset.h"
#include "gc/gc_9_4_3_sh_mask.h"
#include "nbio/nbio_7_9_0_offset.h"
#include "nbio/nbio_7_9_0_sh_mask.h"
/* Both hubs have registers of these names; what is preset is in the memory hub, but for the hive. */
#undef regMC_VM_FB_LOCATION_BASE
#undef regMC_VM_FB_LOCATION_BASE_BASE_IDX
#undef regMC_VM_FB_LOCATION_TOP
#undef regMC_VM_FB_LOCATION_TOP_BASE_IDX

#define NR_XCCS	   8
#define NR_ENGINES 16
#define NR_DIES	   4
#define NR_BASES   6

/* Of mmhub/mmhub_1_8_0_offset.h, whose other names are those of the graphics hub. */
#define regMC_VM_FB_LOCATION_BASE	   0x0c9c
#define regMC_VM_FB_LOCATION_BASE_BASE_IDX 0
#define regMC_VM_FB_LOCATION_TOP	   0x0c9d
#define regMC_VM_FB_LOCATION_TOP_BASE_IDX  0

/* Where VRAM begins in the GPU's own address space, in units of 16 MiB. */
#define FB_BASE 0x8000

struct bases {
	u32 base[NR_BASES];
};

static struct bases gc[NR_XCCS], sdma[NR_ENGINES], mmhub[NR_DIES];
static struct bases nbio = { { 0x74000, 0x74100, 0x75000, 0x76000, 0x77000, 0x78000 } };
static struct bases hdp = { { 0x90000 } }, athub = { { 0x91000, 0x92000 } }, osssys = { { 0x93000 } };
static struct bases smuio = { { 0x94000, 0x95000, 0x96000 } };

/* In dwords; each part begins behind the last register of the one before it. */
static void set_bases(struct amdgpu_device *adev)
{
	for (unsigned int i = 0; i < NR_XCCS; i++) {
		gc[i] = (struct bases){ { 0x20000 + i * 0x8000, 0x22000 + i * 0x8000 } };
		adev->reg_offset[GC_HWIP][i] = gc[i].base;
	}
	for (unsigned int i = 0; i < NR_ENGINES; i++) {
		sdma[i].base[0] = 0x60000 + i * 0x1000;
		adev->reg_offset[SDMA0_HWIP][i] = sdma[i].base;
	}
	for (unsigned int i = 0; i < NR_DIES; i++) {
		mmhub[i].base[0] = 0x70000 + i * 0x1000;
		adev->reg_offset[MMHUB_HWIP][i] = mmhub[i].base;
	}
	adev->reg_offset[NBIO_HWIP][0] = nbio.base;
	adev->reg_offset[HDP_HWIP][0] = hdp.base;
	adev->reg_offset[ATHUB_HWIP][0] = athub.base;
	adev->reg_offset[OSSSYS_HWIP][0] = osssys.base;
	adev->reg_offset[SMUIO_HWIP][0] = smuio.base;
}

/* What the firmware's tables say of them, in KiB but for the last; ROCm's runtime wants to know. */
static void set_caches(struct amdgpu_device *adev)
{
	struct amdgpu_gfx_config *config = &adev->gfx.config;

	config->gc_tcp_size_per_cu = 32;
	config->gc_num_cu_per_sqc = 2;
	config->gc_l1_instruction_cache_size_per_sqc = 64;
	config->gc_l1_data_cache_size_per_sqc = 16;
	config->gc_tcc_size = 4096;
	adev->gmc.mall_size = SZ_256M;
}

struct versions {
	u32 mmhub, osssys, hdp, sdma, nbio, firmware, gc;
};

static int set_versions(struct amdgpu_device *adev, const struct versions *versions)
{
	set_bases(adev);
	set_caches(adev);
	adev->sdma.sdma_mask = GENMASK(NR_ENGINES - 1, 0);
	adev->gfx.xcc_mask = GENMASK(NR_XCCS - 1, 0);
	/* Video engines, which nobody runs: the driver divides by their number. */
	adev->vcn.inst_mask = adev->jpeg.inst_mask = GENMASK(NR_DIES - 1, 0);
	adev->ip_versions[MMHUB_HWIP][0] = versions->mmhub;
	adev->ip_versions[ATHUB_HWIP][0] = IP_VERSION(1, 8, 0);
	adev->ip_versions[OSSSYS_HWIP][0] = versions->osssys;
	adev->ip_versions[HDP_HWIP][0] = versions->hdp;
	adev->ip_versions[SDMA0_HWIP][0] = versions->sdma;
	adev->ip_versions[DF_HWIP][0] = IP_VERSION(4, 15, 0);
	adev->ip_versions[NBIO_HWIP][0] = versions->nbio;
	adev->ip_versions[SMUIO_HWIP][0] = IP_VERSION(13, 0, 3);
	adev->ip_versions[MP0_HWIP][0] = adev->ip_versions[MP1_HWIP][0] = versions->firmware;
	adev->ip_versions[GC_HWIP][0] = versions->gc;
	/* Linux 6.12 learns that from firmware, later ones know it. */
	adev->gmc.xgmi.supported = true;
	adev->nbio.funcs = &nbio_v7_9_funcs;
	adev->nbio.hdp_flush_reg = &nbio_v7_9_hdp_flush_reg;
	adev->smuio.funcs = &smuio_v13_0_3_funcs;
	/* The first revision, 0, the driver does not take. */
	WREG32_SOC15(NBIO, 0, regRCC_STRAP0_RCC_DEV0_EPF0_STRAP0,
		     REG_SET_FIELD(0, RCC_STRAP0_RCC_DEV0_EPF0_STRAP0, STRAP_ATI_REV_ID_DEV0_F0, 1));
	adev->rev_id = adev->nbio.funcs->get_rev_id(adev);
	return aqua_vanjaram_init_soc_config(adev);
}

static int set_mi300x_versions(struct amdgpu_device *adev)
{
	static const struct versions versions = {
		.mmhub = IP_VERSION(1, 8, 0),
		.osssys = IP_VERSION(4, 4, 2),
		.hdp = IP_VERSION(4, 4, 2),
		.sdma = IP_VERSION(4, 4, 2),
		.nbio = IP_VERSION(7, 9, 0),
		.firmware = IP_VERSION(13, 0, 6),
		.gc = IP_VERSION(9, 4, 3),
	};

	return set_versions(adev, &versions);
}

static int set_mi350x_versions(struct amdgpu_device *adev)
{
	static const struct versions versions = {
		.mmhub = IP_VERSION(1, 8, 1),
		.osssys = IP_VERSION(4, 4, 5),
		.hdp = IP_VERSION(4, 4, 5),
		.sdma = IP_VERSION(4, 4, 5),
		.nbio = IP_VERSION(7, 9, 1),
		.firmware = IP_VERSION(13, 0, 12),
		.gc = IP_VERSION(9, 5, 0),
	};

	return set_versions(adev, &versions);
}

static void preset_registers(struct amdgpu_device *adev, const struct asicsim_config *config)
{
	u64 vram = pci_resource_len(adev->pdev, 0);
	u32 memory = REG_SET_FIELD(0, BIF_BX_PF0_PARTITION_MEM_STATUS, NPS_MODE, 1), hive;

	WREG32_SOC15(NBIO, 0, regRCC_DEV0_EPF0_RCC_CONFIG_MEMSIZE, vram >> 20);
	/* One memory partition (NPS1), and no other is possible. */
	WREG32_SOC15(NBIO, 0, regBIF_BX_PF0_PARTITION_MEM_STATUS, memory);
	WREG32_SOC15(NBIO, 0, regBIF_BX_PF0_PARTITION_MEM_CAP, 1);
	WREG32_SOC15(MMHUB, 0, regMC_VM_FB_LOCATION_BASE, FB_BASE);
	WREG32_SOC15(MMHUB, 0, regMC_VM_FB_LOCATION_TOP,
		     FB_BASE + max_t(u32, config->hive_size, 1) * (vram >> 24) - 1);
	if (!config->hive_size)
		return;
	hive = REG_SET_FIELD(0, MC_VM_XGMI_LFB_CNTL, PF_MAX_REGION, config->hive_size - 1);
	hive = REG_SET_FIELD(hive, MC_VM_XGMI_LFB_CNTL, PF_LFB_REGION, config->hive_index);
	WREG32_SOC15(GC, 0, regMC_VM_XGMI_LFB_CNTL, hive);
	WREG32_SOC15(GC, 0, regMC_VM_XGMI_LFB_SIZE, vram >> 24);
}

/* What the driver would ask the PSP for, which writes it down where the driver looks it up. */
static int partition(struct amdgpu_device *adev, int nr_xccs)
{
	static const int modes[NR_XCCS + 1] = {
		[8] = AMDGPU_SPX_PARTITION_MODE,
		[4] = AMDGPU_DPX_PARTITION_MODE,
		[2] = AMDGPU_QPX_PARTITION_MODE,
		[1] = AMDGPU_CPX_PARTITION_MODE,
	};

	WREG32_SOC15(NBIO, 0, regBIF_BX_PF0_PARTITION_COMPUTE_STATUS,
		     REG_SET_FIELD(0, BIF_BX_PF0_PARTITION_COMPUTE_STATUS, PARTITION_MODE, modes[nr_xccs]));
	adev->gfx.num_xcc_per_xcp = nr_xccs;
	return 0;
}

static u32 sdma_client(unsigned int engine)
{
	static const u32 clients[] = {
		SOC15_IH_CLIENTID_SDMA0,
		SOC15_IH_CLIENTID_SDMA1,
		SOC15_IH_CLIENTID_SDMA2,
		SOC15_IH_CLIENTID_SDMA3,
	};

	return clients[engine % ARRAY_SIZE(clients)];
}

/* There is nothing to stop or to start in an XCC. */
struct amdgpu_xcp_ip_funcs gfx_v9_4_3_xcp_funcs;

#define MODEL(id, cus, lds, versions) \
	{ \
		.device_id = id, \
		.type = CHIP_IP_DISCOVERY, \
		.nr_engines = 4, \
		.cus_of_engine = cus, \
		.lds_kib = lds, \
		.engines_of_die = NR_ENGINES / NR_DIES, \
		.sdma_block = &chip_sdma4_4_2_block, \
		.sdma_count = GENMASK(29, 0), \
		.set_ip_versions = versions, \
		.preset_registers = preset_registers, \
		.init_doorbell_index = aqua_vanjaram_doorbell_index_init, \
		.partition = partition, \
		.sdma_client = sdma_client, \
	}

const struct chip_model model_mi300x = MODEL(0x74a1, 0x3ff, 64, set_mi300x_versions);
const struct chip_model model_mi350x = MODEL(0x75a0, 0xff, 160, set_mi350x_versions);
