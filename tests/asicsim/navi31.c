// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU like the AMD Radeon RX 7900 (Navi 31, gfx1100), as far as the KFD sees it: the graphics core is a GC 11.0.0, by
 * which the KFD chooses MQDs, queue manager and trap handler, and MES maps its queues (mes.c). Memory controller, hubs,
 * DMA engines and interrupts are those of mi100.c: what the KFD does with queues does not depend on them.
 */
#include "chip.h"

static int set_ip_versions(struct amdgpu_device *adev)
{
	int err = model_mi100.set_ip_versions(adev);

	adev->sdma.num_instances = 2;
	adev->sdma.sdma_mask = GENMASK(1, 0);
	adev->ip_versions[GC_HWIP][0] = IP_VERSION(11, 0, 0);
	return err;
}

/* Two arrays in an engine, 8 CUs in an array, of which the first one lacks a pair. Engines 4 and 5 are in columns of their own. */
static void set_cus(struct amdgpu_gfx_config *config, struct amdgpu_cu_info *cu)
{
	config->max_sh_per_se = 2;
	config->max_cu_per_sh = 8;
	memset(cu->bitmap, 0, sizeof(cu->bitmap));
	for (unsigned int i = 0; i < 2 * config->max_shader_engines; i++)
		cu->bitmap[0][i / 2 % 4][i % 2 + i / 8 * 2] = i ? 0xff : 0x3f;
	cu->number -= 2;
}

/* Sizes in KiB. */
static void set_core(struct amdgpu_device *adev)
{
	struct amdgpu_gfx_config *config = &adev->gfx.config;
	struct amdgpu_cu_info *cu = &adev->gfx.cu_info;

	/* From 509 on, PCIe atomics are not needed. */
	adev->gfx.mec_fw_version = adev->gfx.mec2_fw_version = 2500;
	adev->gfx.rs64_enable = true;
	config->gc_num_tcp_per_wpg = 2;
	config->gc_tcp_l1_size = 32;
	config->gc_num_sqc_per_wgp = 1;
	config->gc_l1_instruction_cache_size_per_sqc = 32;
	config->gc_l1_data_cache_size_per_sqc = 16;
	config->gc_gl1c_per_sa = 1;
	config->gc_gl1c_size_per_instance = 256;
	config->gc_gl2c_per_gpu = 6144;
	cu->simd_per_cu = 2;
	cu->max_waves_per_simd = 16;
	cu->wave_front_size = 32;
	set_cus(config, cu);
	mes_init(adev);
}

static void preset_registers(struct amdgpu_device *adev, const struct asicsim_config *config)
{
	model_mi100.preset_registers(adev, config);
}

static u32 sdma_client(unsigned int engine)
{
	return model_mi100.sdma_client(engine);
}

const struct chip_model model_navi31 = {
	.device_id = 0x744c,
	.type = CHIP_IP_DISCOVERY,
	.memory_core = IP_VERSION(9, 4, 1),
	.mes = true,
	.nr_engines = 6,
	.cus_of_engine = 0xffff,
	.lds_kib = 64,
	.sdma_block = &chip_sdma4_0_block,
	.sdma_count = GENMASK(21, 0),
	.set_ip_versions = set_ip_versions,
	.set_core = set_core,
	.preset_registers = preset_registers,
	.init_doorbell_index = vega20_doorbell_index_init,
	.sdma_client = sdma_client,
};
