// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory controller: the driver's own (gmc_v9_0.c), but for TLB flushes, which wait for hardware to answer, and for
 * what needs firmware.
 */
#include "chip.h"
#include "block.h"
#include "gmc_v9_0.h"

#define real (gmc_v9_0_ip_block.funcs)

/* Its own code takes a graphics core that it does not know for none. */
static u32 show_core(struct amdgpu_device *adev)
{
	u32 version = adev->ip_versions[GC_HWIP][0];

	if (chip_model_of(adev)->memory_core)
		adev->ip_versions[GC_HWIP][0] = chip_model_of(adev)->memory_core;
	return version;
}

#define WITH_ITS_CORE(adev, call)                        \
	({                                               \
		u32 version = show_core(adev);           \
		int ret = (call);                        \
		(adev)->ip_versions[GC_HWIP][0] = version; \
		ret;                                     \
	})

/* Nothing is cached; whoever is in the middle of an access is waited for. */
static void flush_gpu_tlb(struct amdgpu_device *adev, u32 vmid, u32 vmhub, u32 flush_type)
{
	struct chip *chip = chip_of(adev);
	unsigned long flags;

	if (!chip)
		return;
	spin_lock_irqsave(&chip->walk_lock, flags);
	spin_unlock_irqrestore(&chip->walk_lock, flags);
}

static void flush_gpu_tlb_pasid(struct amdgpu_device *adev, u16 pasid, u32 flush_type, bool all_hub, u32 inst)
{
	flush_gpu_tlb(adev, 0, 0, flush_type);
}

static int gmc_early_init(struct amdgpu_ip_block *block)
{
	static struct amdgpu_gmc_funcs funcs;
	struct amdgpu_device *adev = block->adev;
	struct asicsim_config config;
	int err = WITH_ITS_CORE(adev, real->early_init(block));

	if (err)
		return err;
	adev->asic_type = chip_model_of(adev)->type;
	chip_config_read(adev, &config);
	adev->gmc.xgmi.supported &= !chip_model_of(adev)->memory_core || config.hive_size;
	funcs = *adev->gmc.gmc_funcs;
	funcs.flush_gpu_tlb = flush_gpu_tlb;
	funcs.flush_gpu_tlb_pasid = flush_gpu_tlb_pasid;
	adev->gmc.gmc_funcs = &funcs;
	/* Error counters are read through the PSP. */
	adev->umc.ras = NULL;
	adev->mmhub.ras = NULL;
	adev->hdp.ras = NULL;
	adev->gmc.xgmi.ras = NULL;
	return 0;
}

/* Without "translate further", page tables are plain ones of four levels. */
static int gmc_sw_init(block_arg arg)
{
	int err = WITH_ITS_CORE(block_adev(arg), real->sw_init(arg));

	block_adev(arg)->gmc.translate_further = false;
	return err;
}

/* What the PSP would say of a hive's links: one hop to every other GPU. */
static void set_links(struct amdgpu_device *adev)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(adev->psp.xgmi_context.top_info.nodes); i++) {
		adev->psp.xgmi_context.top_info.nodes[i].num_hops = i != adev->gmc.xgmi.physical_node_id;
		adev->psp.xgmi_context.top_info.nodes[i].num_links = 1;
	}
}

static int enable_gart(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);

	adev->gmc.flush_pasid_uses_kiq = false;
	amdgpu_gtt_mgr_recover(&adev->mman.gtt_mgr);
	return WITH_ITS_CORE(adev, adev->gfxhub.funcs->gart_enable(adev) ?: adev->mmhub.funcs->gart_enable(adev));
}

static int gmc_hw_init(block_arg arg)
{
	set_links(block_adev(arg));
	return enable_gart(arg);
}

static int gmc_late_init(block_arg arg)
{
	return WITH_ITS_CORE(block_adev(arg), real->late_init(arg));
}

static int gmc_sw_fini(block_arg arg)
{
	return real->sw_fini(arg);
}

static const struct amd_ip_funcs gmc_funcs = {
	.name = "asicsim_gmc",
	.early_init = gmc_early_init,
	.late_init = gmc_late_init,
	.sw_init = gmc_sw_init,
	.sw_fini = gmc_sw_fini,
	.hw_init = gmc_hw_init,
	.hw_fini = block_nothing,
	.suspend = block_nothing,
	.resume = enable_gart,
	BLOCK_QUIET,
};

const struct amdgpu_ip_block_version chip_gmc_block = {
	.type = AMD_IP_BLOCK_TYPE_GMC,
	.major = 9,
	.funcs = &gmc_funcs,
};
