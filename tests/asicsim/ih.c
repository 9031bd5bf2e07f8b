// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts: the driver's own ring and decoder, into which the chip writes vectors of eight dwords. */
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/ktime.h>

#include "chip.h"
#include "block.h"
#include "amdgpu_ih.h"
#include "ivsrcid/vmc/irqsrcs_vmc_1_0.h"
#include "soc15_ih_clientid.h"

static u32 ih_get_wptr(struct amdgpu_device *adev, struct amdgpu_ih_ring *ih)
{
	return le32_to_cpu(*ih->wptr_cpu) & ih->ptr_mask;
}

static void ih_set_rptr(struct amdgpu_device *adev, struct amdgpu_ih_ring *ih)
{
	*ih->rptr_cpu = ih->rptr;
}

static const struct amdgpu_ih_funcs ih_funcs = {
	.get_wptr = ih_get_wptr,
	.decode_iv = amdgpu_ih_decode_iv_helper,
	.decode_iv_ts = amdgpu_ih_decode_iv_ts_helper,
	.set_rptr = ih_set_rptr,
};

static int ih_early_init(struct amdgpu_ip_block *block)
{
	block->adev->irq.ih_funcs = &ih_funcs;
	return 0;
}

static int ih_sw_init(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);
	int err = amdgpu_ih_ring_init(adev, &adev->irq.ih, IH_RING_SIZE, true);

	if (!err)
		err = amdgpu_ih_ring_init(adev, &adev->irq.ih_soft, IH_SW_RING_SIZE, true);
	if (!err)
		err = amdgpu_irq_init(adev);
	return err;
}

static int ih_sw_fini(block_arg arg)
{
	amdgpu_irq_fini_sw(block_adev(arg));
	return 0;
}

static int ih_hw_init(block_arg arg)
{
	struct amdgpu_device *adev = block_adev(arg);

	*adev->irq.ih.wptr_cpu = 0;
	adev->irq.ih.rptr = 0;
	adev->irq.ih.enabled = true;
	adev->irq.ih_soft.enabled = true;
	return 0;
}

static int ih_hw_fini(block_arg arg)
{
	block_adev(arg)->irq.ih.enabled = false;
	return 0;
}

static const struct amd_ip_funcs ih_block_funcs = {
	.name = "asicsim_ih",
	.early_init = ih_early_init,
	.sw_init = ih_sw_init,
	.sw_fini = ih_sw_fini,
	.hw_init = ih_hw_init,
	.hw_fini = ih_hw_fini,
	.suspend = ih_hw_fini,
	.resume = ih_hw_init,
	BLOCK_QUIET,
};

const struct amdgpu_ip_block_version chip_ih_block = {
	.type = AMD_IP_BLOCK_TYPE_IH,
	.major = 4,
	.minor = 2,
	.funcs = &ih_block_funcs,
};

/* In interrupt context, as the driver's handler expects. */
void chip_irq(struct irq_work *work)
{
	struct chip *chip = container_of(work, struct chip, irq);

	if (chip->adev->irq.installed)
		generic_handle_irq(chip->adev->irq.irq);
}

void chip_interrupt(struct chip *chip, u32 client, u32 source, u32 ring, const struct chip_vm *vm, const u32 data[4])
{
	u64 now = ktime_get_ns() / 10;
	u32 vector[8] = {
		client | source << 8 | ring << 16 | vm->vmid << 24,
		lower_32_bits(now),
		upper_32_bits(now) & 0xffff,
		(vm->pasid & 0xffff) | vm->ih_node << 16,
		data[0],
		data[1],
		data[2],
		data[3],
	};
	unsigned long flags;

	spin_lock_irqsave(&chip->ih_lock, flags);
	if (chip->adev->irq.ih.enabled)
		amdgpu_ih_ring_write(chip->adev, &chip->adev->irq.ih, vector, ARRAY_SIZE(vector));
	spin_unlock_irqrestore(&chip->ih_lock, flags);
	irq_work_queue(&chip->irq);
}

void chip_vm_fault(struct chip *chip, const struct chip_vm *vm, u64 va)
{
	u32 data[4] = { lower_32_bits(va >> 12), upper_32_bits(va >> 12) & 0xf };

	chip_interrupt(chip, SOC15_IH_CLIENTID_VMC, VMC_1_0__SRCID__VM_FAULT, 0, vm, data);
}
