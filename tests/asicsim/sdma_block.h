/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An SDMA block: the driver's own rings and packets, without firmware. Writing a ring's write pointer wakes the chip. What
 * is needed of the driver's file is static there; whoever includes this one has included it, and has a macro REAL that
 * makes its names.
 */
#include "chip.h"
#include "block.h"

#define FIRMWARE_VERSION 18

static struct amdgpu_ring_funcs ring_funcs;

static void set_wptr(struct amdgpu_ring *ring)
{
	REAL(ring_set_wptr)(ring);
	chip_kick(ring->adev);
}

static int early_init(struct amdgpu_ip_block *block)
{
	struct amdgpu_device *adev = block->adev;
	int err = REAL(early_init)(block);

	if (err)
		return err;
	ring_funcs = REAL(ring_funcs);
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

	for (unsigned int i = 0; i < adev->sdma.num_instances; i++) {
		ring_stop(adev, i);
		amdgpu_ring_fini(&adev->sdma.instance[i].ring);
	}
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
	return REAL(resume)(arg);
}

static const struct amd_ip_funcs sdma_funcs = {
	.name = "asicsim_sdma",
	.early_init = early_init,
	.sw_init = REAL(sw_init),
	.sw_fini = sw_fini,
	.hw_init = REAL(hw_init),
	.hw_fini = REAL(hw_fini),
	.suspend = REAL(suspend),
	.resume = resume,
	BLOCK_QUIET,
};
