// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of GPUs. amdgpu_discovery_set_ip_blocks() is the place where the driver learns which IP blocks a chip has; the
 * file that defines it is left out, and this one takes its place.
 */
#include "chip.h"
#include "hdp_v4_0.h"

static const struct chip_model *const models[] = { 
	&model_mi100, &model_mi210, &model_mi300x, &model_mi350x, &model_navi31,
 };

const struct chip_model *chip_model_of(struct amdgpu_device *adev)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i]->device_id == adev->pdev->device)
			return models[i];
	return NULL;
}

static int add_blocks(struct amdgpu_device *adev, const struct chip_model *model)
{
	const struct amdgpu_ip_block_version *const blocks[] = {
		&chip_common_block, &chip_gmc_block, &chip_ih_block, &chip_gfx_block, model->sdma_block,
	};
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(blocks) && !err; i++)
		err = amdgpu_device_ip_block_add(adev, blocks[i]);
	return err;
}

int amdgpu_discovery_set_ip_blocks(struct amdgpu_device *adev)
{
	static struct amd_pm_funcs no_pm_funcs;
	const struct chip_model *model = chip_model_of(adev);
	int err;

	if (!model) {
		dev_err(adev->dev, "asicsim: no model of the device %#x\n", adev->pdev->device);
		return -ENODEV;
	}
	err = model->set_ip_versions(adev) ?: add_blocks(adev, model);
	if (err)
		return err;
	adev->hdp.funcs = &hdp_v4_0_funcs;
	adev->family = AMDGPU_FAMILY_AI;
	adev->powerplay.pp_funcs = &no_pm_funcs;
	/* No firmware is loaded by the driver, and none is by the PSP, which there is not. Its buffer must have a size.
	 */
	adev->firmware.load_type = AMDGPU_FW_LOAD_PSP;
	adev->firmware.fw_size = PAGE_SIZE;
	return 0;
}

/* There is none: nothing to post, no tables. */
bool amdgpu_get_bios(struct amdgpu_device *adev)
{
	return true;
}

/* Data, which a stub cannot be. */
static struct attribute *no_attributes[] = { NULL };
const struct attribute_group amdgpu_flash_attr_group = { .attrs = no_attributes };
