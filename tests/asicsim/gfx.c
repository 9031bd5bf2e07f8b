// SPDX-License-Identifier: GPL-2.0-only
/* Graphics and compute, as far as the driver itself has to do with them: figures of the chip. It has no shaders. */
#include <linux/ktime.h>

#include "chip.h"
#include "block.h"

#define NR_ENGINES    8 /* shader engines of an MI100, each with 15 of 16 CUs */
#define CUS_OF_ENGINE 0x7fff

static u64 gfx_clock(struct amdgpu_device *adev)
{
	return ktime_get_ns() / 10;
}

static void gfx_select_se_sh(struct amdgpu_device *adev, u32 se, u32 sh, u32 instance, int xcc)
{
}

static const struct amdgpu_gfx_funcs gfx_funcs = {
	.get_gpu_clock_counter = gfx_clock,
	.select_se_sh = gfx_select_se_sh,
};

static bool rlc_is_off(struct amdgpu_device *adev)
{
	return false;
}

static const struct amdgpu_rlc_funcs rlc_funcs = {
	.is_rlc_enabled = rlc_is_off,
};

static void set_cu_info(struct amdgpu_cu_info *cu)
{
	cu->simd_per_cu = 4;
	cu->max_waves_per_simd = 10;
	cu->wave_front_size = 64;
	cu->max_scratch_slots_per_cu = 32;
	cu->lds_size = 64;
	cu->number = NR_ENGINES * hweight32(CUS_OF_ENGINE);
	/* Engines 4 to 7 follow in the second column. */
	for (unsigned int se = 0; se < NR_ENGINES; se++)
		cu->bitmap[0][se % 4][se / 4] = CUS_OF_ENGINE;
}

static int gfx_early_init(struct amdgpu_ip_block *block)
{
	struct amdgpu_device *adev = block->adev;
	struct amdgpu_gfx_config *config = &adev->gfx.config;

	adev->gfx.funcs = &gfx_funcs;
	adev->gfx.rlc.funcs = &rlc_funcs;
	config->max_shader_engines = NR_ENGINES;
	config->max_sh_per_se = 1;
	config->max_cu_per_sh = 16;
	config->max_backends_per_se = 4;
	config->max_texture_channel_caches = 16;
	config->max_gprs = 256;
	config->max_gs_threads = 32;
	config->max_hw_contexts = 8;
	config->gb_addr_config = 0x22014042;
	set_cu_info(&adev->gfx.cu_info);
	adev->gfx.mec.num_mec = 2;
	adev->gfx.mec.num_pipe_per_mec = 4;
	adev->gfx.mec.num_queue_per_pipe = 8;
	adev->gfx.mec_fw_version = adev->gfx.mec2_fw_version = 67;
	adev->gds.gds_size = 0;
	adev->gds.gws_size = 64;
	adev->gds.oa_size = 16;
	return 0;
}

static const struct amd_ip_funcs gfx_block_funcs = {
	.name = "asicsim_gfx",
	.early_init = gfx_early_init,
	.sw_init = block_nothing,
	.sw_fini = block_nothing,
	.hw_init = block_nothing,
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
