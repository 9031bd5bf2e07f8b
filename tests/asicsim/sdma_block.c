// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SDMA block: the driver's own rings and packets (sdma_v4_0.c, included, since what is needed of it is static),
 * without firmware. Writing a ring's write pointer wakes the chip.
 */
#include "amdgpu.h"
#include "amdgpu_sdma.h"

#define amdgpu_sdma_init_microcode(...) 0
#define sdma_v4_0_ip_funcs		real_sdma_v4_0_ip_funcs
#define sdma_v4_0_ip_block		real_sdma_v4_0_ip_block
#define sdma_v4_0_ras_hw_ops		real_sdma_v4_0_ras_hw_ops
#include "sdma_v4_0.c"

#include "chip.h"
#include "block.h"

#define FIRMWARE_VERSION 18

/* Of another chip's file, which sdma_v4_0.c names. */
struct amdgpu_sdma_ras sdma_v4_4_ras;

static struct amdgpu_ring_funcs ring_funcs;

static void set_wptr(struct amdgpu_ring *ring)
{
	sdma_v4_0_ring_set_wptr(ring);
	chip_kick(ring->adev);
}

static int early_init(struct amdgpu_ip_block *block)
{
	struct amdgpu_device *adev = block->adev;
	int err = sdma_v4_0_early_init(block);

	if (err)
		return err;
	ring_funcs = sdma_v4_0_ring_funcs;
	ring_funcs.set_wptr = set_wptr;
	adev->sdma.ras = NULL;
	for (unsigned int i = 0; i < adev->sdma.num_instances; i++) {
		adev->sdma.instance[i].fw_version = FIRMWARE_VERSION;
		adev->sdma.instance[i].burst_nop = true;
		adev->sdma.instance[i].ring.funcs = &ring_funcs;
	}
	return 0;
}

static int sw_fini(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);

	for (unsigned int i = 0; i < adev->sdma.num_instances; i++)
		amdgpu_ring_fini(&adev->sdma.instance[i].ring);
	kfree(adev->sdma.ip_dump);
	return 0;
}

/* After a reset; the driver then begins every ring at 0. */
static int resume(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);

	for (unsigned int i = 0; i < adev->sdma.num_instances; i++) {
		WRITE_ONCE(*(u64 *)adev->sdma.instance[i].ring.wptr_cpu_addr, 0);
		ring_start(adev, i);
	}
	return sdma_v4_0_resume(arg);
}

static const struct amd_ip_funcs sdma_funcs = {
	.name = "asicsim_sdma",
	.early_init = early_init,
	.sw_init = sdma_v4_0_sw_init,
	.sw_fini = sw_fini,
	.hw_init = sdma_v4_0_hw_init,
	.hw_fini = sdma_v4_0_hw_fini,
	.suspend = sdma_v4_0_suspend,
	.resume = resume,
	BLOCK_QUIET,
};

const struct amdgpu_ip_block_version chip_sdma_block = {
	.type = AMD_IP_BLOCK_TYPE_SDMA,
	.major = 4,
	.funcs = &sdma_funcs,
};

u32 sdma_client(unsigned int engine)
{
	return sdma_v4_0_seq_to_irq_id(engine);
}
