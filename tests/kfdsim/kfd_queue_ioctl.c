// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of user queues and their checks: what a process says about a
 * queue, and whether its buffers are mapped as the kernel wants them to be.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd.h"

#define KFD_EOP_SIZE		 4096
#define KFD_BYTES_PER_WAVE_DEBUG 32
#define KFD_BYTES_DEBUG_ALIGN	 64
#define KFD_CU_MASK_MAX_BITS	 1024
#define KFD_ENOTSUPP		 524 /* the kernel's own, seen by user space for unknown queue types */

/* ---- buffers ---- */

/* Pointers must lie in a page that is one mapping, the ring must be one mapping. */
static bool kfd_page_is_exact(struct sim_vm *vm, u64 va)
{
	return sim_vm_is_exact(vm, va & PAGE_MASK, PAGE_SIZE);
}

static u64 kfd_debug_memory_size(const struct sim_gpu *gpu)
{
	u64 cus = sim_gpu_prop(gpu, SIM_PROP_simd_count);
	u64 waves, shader_engines = sim_gpu_prop(gpu, SIM_PROP_array_count);

	cus = div64_u64(cus, max(sim_gpu_prop(gpu, SIM_PROP_simd_per_cu), 1ULL));
	cus = div64_u64(cus, max(sim_gpu_prop(gpu, SIM_PROP_num_xcc), 1ULL));
	shader_engines = div64_u64(shader_engines, max(sim_gpu_prop(gpu, SIM_PROP_simd_arrays_per_engine), 1ULL));
	waves = kfd_gfx(gpu) < 100100 ? min(cus * 40, shader_engines * 512) : cus * 32;
	return round_up(waves * KFD_BYTES_PER_WAVE_DEBUG, KFD_BYTES_DEBUG_ALIGN);
}

static int kfd_check_cwsr(struct kfd_pdd *pdd, const struct kfd_queue_props *props)
{
	struct sim_gpu *gpu = pdd->gpu;
	u64 size;

	if (props->ctl_stack_size != sim_gpu_prop(gpu, SIM_PROP_ctl_stack_size))
		return -EINVAL;
	if (props->cwsr_size < sim_gpu_prop(gpu, SIM_PROP_cwsr_size))
		return -EINVAL;
	size = PAGE_ALIGN((props->cwsr_size + kfd_debug_memory_size(gpu)) *
			  max(sim_gpu_prop(gpu, SIM_PROP_num_xcc), 1ULL));
	if (sim_vm_is_exact(pdd->vm, props->cwsr_va, size) || kfd_svm_covers(pdd, props->cwsr_va, size))
		return 0;
	return -EINVAL;
}

/* Rings have been counted in whole pages only since 6.18: before, the end of one that is smaller does not matter. */
static bool kfd_ring_is_mapped(struct kfd_pdd *pdd, u64 va, u64 size)
{
	va &= PAGE_MASK;
	if (sim_machine.desc.kernel.release < 618 && size < PAGE_SIZE)
		return sim_vm_begins_at(pdd->vm, va);
	return sim_vm_is_exact(pdd->vm, va, PAGE_ALIGN(size));
}

int kfd_queue_check_buffers(struct kfd_pdd *pdd, const struct kfd_queue_props *props)
{
	/* The first kernels took what they were given. */
	if (sim_machine.desc.kernel.release < 612)
		return 0;
	if (!kfd_page_is_exact(pdd->vm, props->wptr_va) || !kfd_page_is_exact(pdd->vm, props->rptr_va))
		return -EINVAL;
	if (!kfd_ring_is_mapped(pdd, props->ring_va, props->ring_size + props->metadata_ring_size))
		return -EINVAL;
	if (props->type != KFD_QUEUE_COMPUTE)
		return 0;
	if (props->eop_va && (props->eop_size < KFD_EOP_SIZE ||
			      !sim_vm_is_exact(pdd->vm, props->eop_va & PAGE_MASK, PAGE_ALIGN((u64)props->eop_size))))
		return -EINVAL;
	return kfd_check_cwsr(pdd, props);
}

/* ---- ioctls ---- */

static int kfd_props_type(u32 ioc_type, struct kfd_queue_props *props)
{
	props->format = KFD_QUEUE_PM4;
	switch (ioc_type) {
	case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
		props->format = KFD_QUEUE_AQL;
		fallthrough;
	case KFD_IOC_QUEUE_TYPE_COMPUTE:
		props->type = KFD_QUEUE_COMPUTE;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA:
		props->type = KFD_QUEUE_SDMA;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
		props->type = KFD_QUEUE_SDMA_XGMI;
		return 0;
	case KFDSIM_QUEUE_TYPE_SDMA_BY_ENG_ID:
		props->type = KFD_QUEUE_SDMA_BY_ENG_ID;
		return sim_machine.desc.kernel.kfd_minor >= 17 ? 0 : -KFD_ENOTSUPP;
	default:
		return -KFD_ENOTSUPP;
	}
}

static bool kfd_user_ok(u64 va, size_t size)
{
	return access_ok(u64_to_user_ptr(va), size);
}

static int kfd_check_share(u32 percent, u32 priority)
{
	return (percent & 0xff) <= KFD_MAX_QUEUE_PERCENTAGE && priority <= KFD_MAX_QUEUE_PRIORITY ? 0 : -EINVAL;
}

/* NULL is no address for a ring, but for none of the others either: access_ok passes it. */
static int kfd_props_from_user(const struct kfdsim_create_queue_args *args, struct kfd_queue_props *props)
{
	if (kfd_check_share(args->queue_percentage, args->queue_priority))
		return -EINVAL;
	if (!kfd_user_ok(args->ring_base_address, sizeof(u64)))
		return -EFAULT;
	if (args->ring_size && !is_power_of_2(args->ring_size))
		return -EINVAL;
	if (args->metadata_ring_size && !is_power_of_2(args->metadata_ring_size))
		return -EINVAL;
	if (!kfd_user_ok(args->read_pointer_address, sizeof(u32)) ||
	    !kfd_user_ok(args->write_pointer_address, sizeof(u32)) ||
	    !kfd_user_ok(args->eop_buffer_address, sizeof(u32)) ||
	    !kfd_user_ok(args->ctx_save_restore_address, sizeof(u32)))
		return -EFAULT;

	props->percent = args->queue_percentage & 0xff;
	props->priority = args->queue_priority;
	props->ring_va = args->ring_base_address;
	props->ring_size = max_t(u32, args->ring_size, KFD_MIN_QUEUE_RING_SIZE);
	props->rptr_va = args->read_pointer_address;
	props->wptr_va = args->write_pointer_address;
	props->eop_va = args->eop_buffer_address;
	props->eop_size = args->eop_buffer_size;
	props->cwsr_va = args->ctx_save_restore_address;
	props->cwsr_size = args->ctx_save_restore_size;
	props->ctl_stack_size = args->ctl_stack_size;
	props->sdma_engine_id = args->sdma_engine_id;
	if (args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
		props->metadata_ring_size = args->metadata_ring_size;
	return kfd_props_type(args->queue_type, props);
}

static int kfd_create_from_user(struct kfd_process *p, struct kfdsim_create_queue_args *args,
				struct kfd_queue_props *props)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	struct kfd_queue *q;
	int ret;

	if (!pdd)
		return -EINVAL;
	if (!pdd->vm)
		return -ESRCH;
	if (props->type == KFD_QUEUE_SDMA_BY_ENG_ID &&
	    props->sdma_engine_id >=
		    kfd_nr_engines(pdd->gpu, KFD_QUEUE_SDMA) + kfd_nr_engines(pdd->gpu, KFD_QUEUE_SDMA_XGMI))
		return -EINVAL;
	ret = kfd_doorbells_alloc(pdd);
	if (ret)
		return ret;
	ret = kfd_queue_check_buffers(pdd, props);
	if (ret)
		return ret;
	ret = kfd_queue_create(pdd, props, NULL, &q);
	if (ret)
		return ret;
	args->queue_id = q->id;
	args->doorbell_offset = KFD_MMAP_TYPE_DOORBELL | KFD_MMAP_GPU_ID(args->gpu_id) | (q->doorbell_id * sizeof(u64));
	return 0;
}

int kfd_ioctl_create_queue(struct kfd_process *p, void *data)
{
	struct kfdsim_create_queue_args *args = data;
	struct kfd_queue_props props = {};
	int ret;

	ret = kfd_props_from_user(args, &props);
	if (ret)
		return ret;
	args->ring_size = props.ring_size;
	mutex_lock(&p->lock);
	ret = kfd_create_from_user(p, args, &props);
	mutex_unlock(&p->lock);
	return ret;
}

int kfd_ioctl_destroy_queue(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_destroy_queue_args *args = data;
	struct kfd_queue *q;
	int ret = -EINVAL;

	mutex_lock(&p->lock);
	q = kfd_queue_by_id(p, args->queue_id);
	if (q) {
		kfd_queue_destroy(q);
		ret = 0;
	}
	mutex_unlock(&p->lock);
	return ret;
}

static int kfd_update(struct kfd_process *p, const struct kfd_ioctl_update_queue_args *args, u32 ring_size)
{
	struct kfd_queue *q = kfd_queue_by_id(p, args->queue_id);
	u64 ring = args->ring_base_address;

	if (!q)
		return -EFAULT;
	if (ring && sim_machine.desc.kernel.release >= 612 &&
	    !kfd_ring_is_mapped(q->pdd, ring, (u64)ring_size + q->props.metadata_ring_size))
		return -EFAULT;
	mutex_lock(&q->exec_lock);
	q->props.ring_va = ring;
	q->props.ring_size = ring_size;
	q->props.percent = args->queue_percentage & 0xff;
	q->props.priority = args->queue_priority;
	if (!kfd_queue_is_active(q))
		kfd_waves_preempt(q);
	mutex_unlock(&q->exec_lock);
	kfd_engine_kick(q);
	return 0;
}

/* A ring at NULL, or a percentage of 0, makes the queue stand still. */
int kfd_ioctl_update_queue(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_update_queue_args *args = data;
	int ret;

	ret = kfd_check_share(args->queue_percentage, args->queue_priority);
	if (ret)
		return ret;
	if (!kfd_user_ok(args->ring_base_address, sizeof(u64)))
		return -EFAULT;
	if (args->ring_size && !is_power_of_2(args->ring_size))
		return -EINVAL;
	mutex_lock(&p->lock);
	ret = kfd_update(p, args, max_t(u32, args->ring_size, KFD_MIN_QUEUE_RING_SIZE));
	mutex_unlock(&p->lock);
	return ret;
}

/* Work group processors: CUs go in pairs. */
static bool kfd_cu_pairs_ok(const u32 *mask, unsigned int words)
{
	unsigned int i;

	for (i = 0; i < words; i++)
		if ((mask[i] & 0x55555555) != ((mask[i] >> 1) & 0x55555555))
			return false;
	return true;
}

static int kfd_set_cu_mask(struct kfd_process *p, u32 queue_id, const u32 *mask, unsigned int words)
{
	struct kfd_queue *q = kfd_queue_by_id(p, queue_id);

	if (!q)
		return -EFAULT;
	if (kfd_gfx(q->pdd->gpu) >= 100000 && !kfd_cu_pairs_ok(mask, words))
		return -EINVAL;
	mutex_lock(&q->exec_lock);
	memset(q->mqd.cu_mask, 0, sizeof(q->mqd.cu_mask));
	memcpy(q->mqd.cu_mask, mask, words * sizeof(u32));
	mutex_unlock(&q->exec_lock);
	return 0;
}

int kfd_ioctl_set_cu_mask(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_cu_mask_args *args = data;
	unsigned int bits = min_t(u32, args->num_cu_mask, KFD_CU_MASK_MAX_BITS);
	u32 mask[KFD_CU_MASK_MAX_BITS / 32];
	int ret;

	if (args->num_cu_mask % 32 || !args->num_cu_mask)
		return -EINVAL;
	if (copy_from_user(mask, u64_to_user_ptr(args->cu_mask_ptr), bits / 8))
		return -EFAULT;
	mutex_lock(&p->lock);
	ret = kfd_set_cu_mask(p, args->queue_id, mask, bits / 32);
	mutex_unlock(&p->lock);
	return ret;
}

/* The control stack is the kernel's memory up to gfx9, and part of the save area since. */
static int kfd_copy_wave_state(struct kfd_queue *q, struct kfd_ioctl_get_queue_wave_state_args *args)
{
	u32 size = kfd_ctl_stack_size(q);

	args->ctl_stack_used_size = 0;
	args->save_area_used_size = 0;
	if (!q->mqd.wave)
		return 0;
	args->ctl_stack_used_size = size;
	args->save_area_used_size = q->props.cwsr_size;
	return copy_to_user(u64_to_user_ptr(args->ctl_stack_address), q->ctl_stack, size) ? -EFAULT : 0;
}

int kfd_ioctl_get_queue_wave_state(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_queue_wave_state_args *args = data;
	struct kfd_queue *q;
	int ret = -EFAULT;

	mutex_lock(&p->lock);
	q = kfd_queue_by_id(p, args->queue_id);
	if (q) {
		ret = -EINVAL;
		if (q->props.type == KFD_QUEUE_COMPUTE && (!kfd_queue_is_active(q) || !kfd_queue_may_run(q)))
			ret = kfd_copy_wave_state(q, args);
	}
	mutex_unlock(&p->lock);
	return ret;
}

/* Global wave sync goes to one queue of a process on a GPU. */
static int kfd_set_gws(struct kfd_process *p, u32 queue_id, bool on)
{
	struct kfd_queue *q = kfd_queue_by_id(p, queue_id), *other;

	if (!q)
		return -EINVAL;
	if (!sim_gpu_prop(q->pdd->gpu, SIM_PROP_num_gws))
		return -ENODEV;
	if (!on) {
		if (!q->gws)
			return -EINVAL;
		q->gws = false;
		return 0;
	}
	list_for_each_entry (other, &p->queues, node)
		if (other->pdd == q->pdd && other->gws)
			return -EBUSY;
	q->gws = true;
	return 0;
}

int kfd_ioctl_alloc_queue_gws(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_alloc_queue_gws_args *args = data;
	int ret;

	mutex_lock(&p->lock);
	ret = kfd_set_gws(p, args->queue_id, args->num_gws);
	mutex_unlock(&p->lock);
	args->first_gws = 0;
	return ret;
}
