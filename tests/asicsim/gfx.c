// SPDX-License-Identifier: GPL-2.0-only
/* Graphics and compute, as far as the driver itself has to do with them: figures of the chip. It has no shaders. */
#include <linux/ktime.h>

#include "chip.h"
#include "amdgpu_xcp.h"
#include "block.h"

static u64 gfx_clock(struct amdgpu_device *adev)
{
	return ktime_get_ns() / 10;
}

static void gfx_select_se_sh(struct amdgpu_device *adev, u32 se, u32 sh, u32 instance, int xcc)
{
}

static int gfx_partition(struct amdgpu_device *adev, int nr_xccs)
{
	return chip_model_of(adev)->partition(adev, nr_xccs);
}

static int gfx_xccs_of_partition(struct amdgpu_device *adev)
{
	return adev->gfx.num_xcc_per_xcp;
}

/* Nodes are numbered as in partition.c. */
static int gfx_xcc_of_node(struct amdgpu_device *adev, int node)
{
	return node / 4 * 2 + (node % 4 == 2);
}

static const struct amdgpu_gfx_funcs gfx_funcs = {
	.get_gpu_clock_counter = gfx_clock,
	.select_se_sh = gfx_select_se_sh,
	.switch_partition_mode = gfx_partition,
	.get_xccs_per_xcp = gfx_xccs_of_partition,
	.ih_node_to_logical_xcc = gfx_xcc_of_node,
};

static bool rlc_is_off(struct amdgpu_device *adev)
{
	return false;
}

static const struct amdgpu_rlc_funcs rlc_funcs = {
	.is_rlc_enabled = rlc_is_off,
};

static void set_cu_info(struct amdgpu_cu_info *cu, const struct chip_model *model, unsigned int nr_xccs)
{
	cu->simd_per_cu = 4;
	cu->max_waves_per_simd = 10;
	cu->wave_front_size = 64;
	cu->max_scratch_slots_per_cu = 32;
	cu->lds_size = model->lds_kib;
	cu->number = nr_xccs * model->nr_engines * hweight32(model->cus_of_engine);
	/* Engines 4 to 7 follow in the second column. */
	for (unsigned int xcc = 0; xcc < nr_xccs; xcc++)
		for (unsigned int se = 0; se < model->nr_engines; se++)
			cu->bitmap[xcc][se % 4][se / 4] = model->cus_of_engine;
}

static int gfx_early_init(struct amdgpu_ip_block *block)
{
	struct amdgpu_device *adev = block->adev;
	struct amdgpu_gfx_config *config = &adev->gfx.config;
	const struct chip_model *model = chip_model_of(adev);

	adev->gfx.funcs = &gfx_funcs;
	adev->gfx.rlc.funcs = &rlc_funcs;
	config->max_shader_engines = model->nr_engines;
	config->max_sh_per_se = 1;
	config->max_cu_per_sh = fls(model->cus_of_engine);
	config->max_backends_per_se = 4;
	config->max_texture_channel_caches = 16;
	config->max_gprs = 256;
	config->max_gs_threads = 32;
	config->max_hw_contexts = 8;
	config->gb_addr_config = 0x22014042;
	set_cu_info(&adev->gfx.cu_info, model, NUM_XCC(adev->gfx.xcc_mask));
	adev->gfx.mec.num_mec = 2;
	adev->gfx.mec.num_pipe_per_mec = 4;
	adev->gfx.mec.num_queue_per_pipe = 8;
	adev->gfx.mec_fw_version = adev->gfx.mec2_fw_version = 67;
	if (model->set_core)
		model->set_core(adev);
	adev->gds.gds_size = 0;
	adev->gds.gws_size = 64;
	adev->gds.oa_size = 16;
	return 0;
}

/* As the driver does it for itself when it starts the XCCs. */
static int gfx_hw_init(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);
	struct asicsim_config config;

	if (!chip_model_of(adev)->partition)
		return 0;
	chip_config_read(adev, &config);
	return amdgpu_xcp_switch_partition_mode(adev->xcp_mgr, config.partition_mode);
}

static const struct amd_ip_funcs gfx_block_funcs = {
	.name = "asicsim_gfx",
	.early_init = gfx_early_init,
	.sw_init = block_nothing,
	.sw_fini = block_nothing,
	.hw_init = gfx_hw_init,
	.hw_fini = block_nothing,
	.suspend = block_nothing,
	.resume = block_nothing,
	BLOCK_QUIET,
};

const struct amdgpu_ip_block_version chip_gfx_block = {
	.type = AMD_IP_BLOCK_TYPE_GFX,
	.major = 9,
	.minor = 4,
	.rev = 1,
	.funcs = &gfx_block_funcs,
};
