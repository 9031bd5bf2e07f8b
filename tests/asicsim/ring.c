// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's SDMA rings. A packet that fails hangs its ring, as on hardware: the driver notices when the job's time
 * is up, and resets the chip.
 */
#include "chip.h"

static bool ring_is_ready(struct amdgpu_ring *ring)
{
	return ring->ring && ring->wptr_cpu_addr && ring->rptr_cpu_addr;
}

/* Runs what comes next, an IB that has begun or a packet: its length, 0: no packet, or an error. */
static int ring_step(struct sdma_run *run, struct chip_ring *r, u64 wptr)
{
	struct amdgpu_ring *ring = run->ring;
	u32 dw[64], avail = min_t(u64, wptr - r->rptr, ARRAY_SIZE(dw));
	int err = sdma_ib_continue(run);

	if (err == -EFAULT)
		chip_vm_fault(run->chip, &r->ib.vm, run->fault);
	if (err || !avail)
		return err;
	for (u32 i = 0; i < avail; i++)
		dw[i] = ring->ring[(r->rptr + i) & ring->buf_mask];
	return sdma_packet(run, dw, avail) ?: -EINVAL;
}

static void begin_anew(struct amdgpu_device *adev, unsigned int engine, bool hung)
{
	struct chip *chip = chip_of(adev);

	if (!chip)
		return;
	mutex_lock(&chip->queue_lock);
	chip->rings[engine].rptr = 0;
	chip->rings[engine].hung = hung;
	mutex_unlock(&chip->queue_lock);
}

void ring_start(struct amdgpu_device *adev, unsigned int engine)
{
	begin_anew(adev, engine, false);
}

void ring_stop(struct amdgpu_device *adev, unsigned int engine)
{
	begin_anew(adev, engine, true);
}

bool ring_run(struct chip *chip, unsigned int engine)
{
	struct amdgpu_ring *ring = &chip->adev->sdma.instance[engine].ring;
	struct chip_ring *r = &chip->rings[engine];
	struct sdma_run run = { .chip = chip, .engine = engine, .ring = ring, .ib = &r->ib };
	bool any = false;
	u64 wptr;
	int n;

	if (r->hung || !ring_is_ready(ring))
		return false;
	run.vm.ih_node = chip_node_of_engine(chip, engine);
	wptr = READ_ONCE(*(u64 *)ring->wptr_cpu_addr) >> 2;
	smp_rmb();
	while (r->rptr < wptr || r->ib.dw) {
		n = ring_step(&run, r, wptr);
		if (n == -EAGAIN || !n)
			break;
		if (n < 0) {
			pr_err("asicsim: sdma%u: the ring hangs at %llu: error %d at %#llx\n", engine, r->rptr, n,
			       run.fault);
			r->hung = true;
			break;
		}
		r->rptr += n;
		any = true;
		WRITE_ONCE(*(u64 *)ring->rptr_cpu_addr, r->rptr << 2);
		if (READ_ONCE(chip->slow))
			break;
	}
	return any;
}
