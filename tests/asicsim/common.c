// SPDX-License-Identifier: GPL-2.0-only
/*
 * The IP block "common": what concerns the chip as a whole. It starts and stops the chip's thread, and resets it.
 */
#include "chip.h"
#include "block.h"
#include "amdgpu_reset.h"

static bool asic_no(struct amdgpu_device *adev)
{
	return false;
}

static int asic_zero(struct amdgpu_device *adev)
{
	return 0;
}

static u64 asic_zero64(struct amdgpu_device *adev)
{
	return 0;
}

static void asic_nothing(struct amdgpu_device *adev)
{
}

/* A reset of hardware takes seconds: one that is held lasts until it is released, a minute at most. */
static int asic_reset(struct amdgpu_device *adev)
{
	struct chip *chip = chip_of(adev);

	if (!chip)
		return 0;
	for (unsigned int i = 0; i < 600 && READ_ONCE(chip->reset_held); i++)
		msleep(100);
	chip_reset(chip);
	return 0;
}

static enum amd_reset_method asic_reset_method(struct amdgpu_device *adev)
{
	return AMD_RESET_METHOD_MODE1;
}

static u32 asic_xclk(struct amdgpu_device *adev)
{
	return 10000;
}

/* Registers that soc15.c lets user space read. */
static int asic_read_register(struct amdgpu_device *adev, u32 se, u32 sh, u32 offset, u32 *value)
{
	switch (offset) {
	case 0x2004: /* GRBM_STATUS */
		*value = 0;
		return 0;
	case 0x263e: /* GB_ADDR_CONFIG */
		*value = adev->gfx.config.gb_addr_config;
		return 0;
	}
	return -EINVAL;
}

static u32 asic_memsize(struct amdgpu_device *adev)
{
	return adev->nbio.funcs->get_memsize(adev);
}

static void asic_pcie_usage(struct amdgpu_device *adev, u64 *count0, u64 *count1)
{
	*count0 = *count1 = 0;
}

static int asic_codecs(struct amdgpu_device *adev, bool encode, const struct amdgpu_video_codecs **codecs)
{
	static const struct amdgpu_video_codecs none;

	*codecs = &none;
	return 0;
}

static void asic_doorbell_index(struct amdgpu_device *adev)
{
	chip_model_of(adev)->init_doorbell_index(adev);
}

static const struct amdgpu_asic_funcs asic_funcs = {
	.read_disabled_bios = asic_no,
	.read_register = asic_read_register,
	.reset = asic_reset,
	.reset_method = asic_reset_method,
	.get_xclk = asic_xclk,
	.get_config_memsize = asic_memsize,
	WITHOUT_FULL_RESET(asic_no)
	.init_doorbell_index = asic_doorbell_index,
	.get_pcie_usage = asic_pcie_usage,
	.need_reset_on_init = asic_no,
	.get_pcie_replay_count = asic_zero64,
	.supports_baco = asic_zero,
	.pre_asic_init = asic_nothing,
	.query_video_codecs = asic_codecs,
};

static int common_early_init(struct amdgpu_ip_block *block)
{
	struct amdgpu_device *adev = block->adev;
	struct asicsim_config config;

	chip_config_read(adev, &config);
	adev->asic_funcs = &asic_funcs;
	/* For what the driver polls: the chip is a thread, which may have to wait for a processor. */
	adev->usec_timeout = 10 * USEC_PER_SEC;
	adev->rmmio_remap.reg_offset = 0x80000 - PAGE_SIZE;
	adev->rmmio_remap.bus_addr = adev->rmmio_base + adev->rmmio_remap.reg_offset;
	adev->unique_id = config.unique_id_lo | (u64)config.unique_id_hi << 32;
	/* Until the next block sets it again: by the type the driver looks for firmware with the chip's properties. */
	adev->asic_type = CHIP_IP_DISCOVERY;
	chip_model_of(adev)->preset_registers(adev, &config);
	return 0;
}

static int common_sw_init(block_arg arg)
{
	return chip_start(block_adev(arg));
}

static int common_sw_fini(block_arg arg)
{
	chip_stop(block_adev(arg));
	return 0;
}

static const struct amd_ip_funcs common_funcs = {
	.name = "asicsim_common",
	.early_init = common_early_init,
	.sw_init = common_sw_init,
	.sw_fini = common_sw_fini,
	.hw_init = block_nothing,
	.hw_fini = block_nothing,
	.suspend = block_nothing,
	.resume = block_nothing,
	BLOCK_QUIET,
};

const struct amdgpu_ip_block_version chip_common_block = {
	.type = AMD_IP_BLOCK_TYPE_COMMON,
	.major = 2,
	.funcs = &common_funcs,
};
