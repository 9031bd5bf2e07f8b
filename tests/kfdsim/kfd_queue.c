// SPDX-License-Identifier: GPL-2.0-only
/*
 * User queues: the checks of CREATE_QUEUE, the numbers that a queue takes
 * (queue id, SDMA engine and queue, doorbell), eviction. What makes a queue
 * move is in kfd_engine.c.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd.h"

#define KFD_QUEUES_PER_GPU	   127 /* of one process; 255 on gfx94x and later */
#define KFD_QUEUES_PER_GPU_GFX94   255
#define KFD_QUEUES_PER_DEVICE	   4096
#define KFD_EOP_SIZE		   4096
#define KFD_BYTES_PER_WAVE_DEBUG   32
#define KFD_BYTES_DEBUG_ALIGN	   64
#define KFD_SDMA_DOORBELL_BASE	   0x100
#define KFD_SDMA_DOORBELL_STRIDE   10
#define KFD_SDMA_DOORBELL_ALIGN	   4 /* gfx94x, gfx95x */
#define KFD_CU_MASK_MAX_BITS	   1024
#define KFD_ENOTSUPP		   524 /* the kernel's own, seen by user space for unknown queue types */

static u32 kfd_gfx(const struct sim_gpu *gpu)
{
	return sim_gpu_prop(gpu, SIM_PROP_gfx_target_version);
}

static bool kfd_is_gfx94(const struct sim_gpu *gpu)
{
	return kfd_gfx(gpu) >= 90400 && kfd_gfx(gpu) < 100000;
}

static bool kfd_is_sdma(u32 type)
{
	return type == KFD_QUEUE_SDMA || type == KFD_QUEUE_SDMA_XGMI || type == KFD_QUEUE_SDMA_BY_ENG_ID;
}

u32 kfd_queue_mqd_size(const struct sim_gpu *gpu, u32 type)
{
	u32 gfx = kfd_gfx(gpu);

	if (type != KFD_QUEUE_SDMA && type != KFD_QUEUE_SDMA_XGMI)
		return KFD_MQD_SIZE_COMPUTE;
	return gfx >= 100000 && gfx < 110000 ? KFD_MQD_SIZE_SDMA10 : KFD_MQD_SIZE_SDMA;
}

static struct kfd_queue *kfd_queue_by_id(struct kfd_process *p, u32 id)
{
	struct kfd_queue *q;

	list_for_each_entry(q, &p->queues, node)
		if (q->id == id)
			return q;
	return NULL;
}

/* ---- SDMA engines: id = queue * engines + engine, per GPU, for all processes ---- */

static unsigned int kfd_nr_engines(const struct sim_gpu *gpu, u32 type)
{
	return sim_gpu_prop(gpu, type == KFD_QUEUE_SDMA_XGMI ? SIM_PROP_num_sdma_xgmi_engines :
							       SIM_PROP_num_sdma_engines);
}

/* A queue on a given engine becomes one of the kind that the engine is of. */
static void kfd_sdma_resolve_engine(struct kfd_queue *q, unsigned int *ret_first, unsigned int *ret_step)
{
	unsigned int pcie = kfd_nr_engines(q->pdd->gpu, KFD_QUEUE_SDMA);
	u32 engine = q->props.sdma_engine_id;

	*ret_first = 0;
	*ret_step = 1;
	if (q->props.type != KFD_QUEUE_SDMA_BY_ENG_ID)
		return;
	q->props.type = engine < pcie ? KFD_QUEUE_SDMA : KFD_QUEUE_SDMA_XGMI;
	*ret_first = engine < pcie ? engine : engine - pcie;
	*ret_step = kfd_nr_engines(q->pdd->gpu, q->props.type);
}

static int kfd_sdma_alloc(struct kfd_queue *q, const u32 *restore_id)
{
	struct kfd_gpu *kgpu = kfd_gpu(q->pdd->gpu);
	unsigned int first, step, nr, id;
	unsigned long *busy;
	int ret = -ENOMEM;

	kfd_sdma_resolve_engine(q, &first, &step);
	busy = q->props.type == KFD_QUEUE_SDMA ? kgpu->sdma_busy : kgpu->xgmi_busy;
	nr = q->props.type == KFD_QUEUE_SDMA ? kgpu->nr_sdma : kgpu->nr_xgmi;

	mutex_lock(&kgpu->lock);
	if (restore_id && bitmap_weight(busy, nr) < nr) {
		id = *restore_id;
		ret = id >= nr ? -EINVAL : test_bit(id, busy) ? -EBUSY : 0;
	} else if (!restore_id) {
		for (id = first; id < nr && test_bit(id, busy);)
			id += step;
		ret = id < nr ? 0 : -ENOMEM;
	}
	if (!ret) {
		__set_bit(id, busy);
		q->sdma_id = id;
		q->holds_sdma = true;
	}
	mutex_unlock(&kgpu->lock);
	return ret;
}

static void kfd_sdma_free(struct kfd_queue *q)
{
	struct kfd_gpu *kgpu = kfd_gpu(q->pdd->gpu);

	if (!q->holds_sdma)
		return;
	mutex_lock(&kgpu->lock);
	__clear_bit(q->sdma_id, q->props.type == KFD_QUEUE_SDMA ? kgpu->sdma_busy : kgpu->xgmi_busy);
	mutex_unlock(&kgpu->lock);
	q->holds_sdma = false;
}

/* Engine among all of the GPU: the XGMI ones come after the others. */
static unsigned int kfd_sdma_engine(const struct kfd_queue *q)
{
	unsigned int n = kfd_nr_engines(q->pdd->gpu, q->props.type);
	unsigned int base = q->props.type == KFD_QUEUE_SDMA ? 0 : kfd_nr_engines(q->pdd->gpu, KFD_QUEUE_SDMA);

	return base + q->sdma_id % max(n, 1U);
}

/* ---- doorbells: fixed for an SDMA queue, any free one for a compute queue ---- */

static u32 kfd_sdma_doorbell(const struct kfd_queue *q)
{
	u32 base = KFD_SDMA_DOORBELL_BASE + KFD_SDMA_DOORBELL_STRIDE * kfd_sdma_engine(q);
	u32 nr = q->sdma_id / max(kfd_nr_engines(q->pdd->gpu, q->props.type), 1U);

	if (kfd_is_gfx94(q->pdd->gpu))
		base = round_up(base, KFD_SDMA_DOORBELL_ALIGN);
	return base + (nr & 1) * KFD_DOORBELL_MIRROR + (nr >> 1);
}

static int kfd_doorbell_alloc(struct kfd_queue *q, const u32 *restore_id)
{
	unsigned long *ids = q->pdd->doorbell_ids;
	unsigned int id;

	if (kfd_is_sdma(q->props.type)) {
		id = kfd_sdma_doorbell(q);
		if (id >= KFD_MAX_QUEUES || (restore_id && *restore_id != id))
			return -EINVAL;
		q->doorbell_id = id;
		return 0;
	}
	id = restore_id ? *restore_id : find_first_zero_bit(ids, KFD_MAX_QUEUES);
	if (id >= KFD_MAX_QUEUES)
		return restore_id ? -EINVAL : -EBUSY;
	if (test_bit(id, ids))
		return -EINVAL;
	__set_bit(id, ids);
	q->doorbell_id = id;
	q->holds_doorbell = true;
	return 0;
}

static void kfd_doorbell_free(struct kfd_queue *q)
{
	if (q->holds_doorbell)
		__clear_bit(q->doorbell_id, q->pdd->doorbell_ids);
	q->holds_doorbell = false;
}

/* ---- queue ids ---- */

static int kfd_queue_id_alloc(struct kfd_queue *q, const u32 *restore_id)
{
	unsigned long *ids = q->process->queue_ids;
	unsigned int id;

	id = restore_id ? *restore_id : find_first_zero_bit(ids, KFD_MAX_QUEUES);
	if (id >= KFD_MAX_QUEUES)
		return restore_id ? -EINVAL : -ENOMEM;
	if (test_bit(id, ids))
		return -ENOSPC;
	__set_bit(id, ids);
	q->id = id;
	q->holds_id = true;
	return 0;
}

/* ---- life ---- */

static int kfd_device_count_queue(struct kfd_queue *q)
{
	struct kfd_gpu *kgpu = kfd_gpu(q->pdd->gpu);
	int ret = 0;

	mutex_lock(&kgpu->lock);
	if (kgpu->nr_queues >= KFD_QUEUES_PER_DEVICE)
		ret = -EPERM;
	else
		kgpu->nr_queues++;
	mutex_unlock(&kgpu->lock);
	q->counted = !ret;
	return ret;
}

static void kfd_queue_free(struct kfd_queue *q)
{
	struct kfd_gpu *kgpu = kfd_gpu(q->pdd->gpu);

	kfd_doorbell_free(q);
	kfd_sdma_free(q);
	if (q->counted) {
		mutex_lock(&kgpu->lock);
		kgpu->nr_queues--;
		mutex_unlock(&kgpu->lock);
	}
	if (q->holds_id)
		__clear_bit(q->id, q->process->queue_ids);
	mutex_destroy(&q->exec_lock);
	kfree(q);
	sim_object_add(SIM_OBJ_QUEUE, -1);
}

static bool kfd_engine_should_stop(void *ctx)
{
	struct kfd_queue *q = ctx;

	return READ_ONCE(q->stopping);
}

static void kfd_sdma_trap(void *ctx, u32 context_id)
{
	struct kfd_queue *q = ctx;

	kfd_event_interrupt(q->process, context_id);
}

static void kfd_queue_init_engine(struct kfd_queue *q, const struct kfd_mqd *mqd)
{
	u64 doorbell = 0;

	q->step = kfd_aql_step;
	if (kfd_is_sdma(q->props.type)) {
		q->step = kfd_sdma_step;
		sim_sdma_init(&q->sdma, q->pdd->vm);
		q->sdma.engine = kfd_sdma_engine(q);
		q->sdma.trap = kfd_sdma_trap;
		q->sdma.stop = kfd_engine_should_stop;
		q->sdma.ctx = q;
	}
	if (mqd) {
		q->mqd = *mqd;
		doorbell = mqd->doorbell;
		if (mqd->magic != KFD_MQD_MAGIC)
			kfd_engine_hang(q, "the restored MQD does not come from a simulated GPU; first word", mqd->magic);
		if (!is_power_of_2(q->props.ring_size))
			kfd_engine_hang(q, "the restored ring's size is no power of two", q->props.ring_size);
	}
	WRITE_ONCE(q->pdd->doorbells[q->doorbell_id], doorbell);
}

static int kfd_queue_take_numbers(struct kfd_queue *q, const struct kfd_queue_restore *restore)
{
	int ret;

	ret = kfd_queue_id_alloc(q, restore ? &restore->id : NULL);
	if (ret)
		return ret;
	ret = kfd_device_count_queue(q);
	if (ret)
		return ret;
	if (kfd_is_sdma(q->props.type)) {
		ret = kfd_sdma_alloc(q, restore ? &restore->sdma_id : NULL);
		if (ret)
			return ret;
	}
	return kfd_doorbell_alloc(q, restore ? &restore->doorbell_id : NULL);
}

static unsigned int kfd_max_queues(const struct sim_gpu *gpu)
{
	return kfd_is_gfx94(gpu) ? KFD_QUEUES_PER_GPU_GFX94 : KFD_QUEUES_PER_GPU;
}

int kfd_queue_create(struct kfd_pdd *pdd, const struct kfd_queue_props *props, const struct kfd_queue_restore *restore,
		     struct kfd_queue **ret)
{
	struct kfd_process *p = pdd->process;
	struct kfd_queue *q;
	int err;

	if (p->gone)
		return -ESRCH;
	if (pdd->nr_queues >= kfd_max_queues(pdd->gpu))
		return -ENOSPC;
	if (!kfd_is_sdma(props->type) && props->type != KFD_QUEUE_COMPUTE)
		return -EINVAL;
	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	sim_object_add(SIM_OBJ_QUEUE, 1);
	q->process = p;
	q->pdd = pdd;
	q->props = *props;
	mutex_init(&q->exec_lock);
	err = kfd_queue_take_numbers(q, restore);
	if (err)
		goto err_free;
	kfd_queue_init_engine(q, restore ? restore->mqd : NULL);
	err = kfd_engine_start(q);
	if (err)
		goto err_free;
	q->holds_buffers = !restore;
	list_add_tail(&q->node, &p->queues);
	pdd->nr_queues++;
	kfd_procfs_add_queue(q);
	*ret = q;
	return 0;

err_free:
	kfd_queue_free(q);
	return err;
}

void kfd_queue_destroy(struct kfd_queue *q)
{
	kfd_procfs_remove_queue(q);
	WRITE_ONCE(q->stopping, true);
	kfd_engine_stop(q);
	list_del(&q->node);
	q->pdd->nr_queues--;
	kfd_queue_free(q);
}

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

static int kfd_check_buffers(struct kfd_pdd *pdd, const struct kfd_queue_props *props)
{
	u64 ring = PAGE_ALIGN(props->ring_size + props->metadata_ring_size);

	if (!kfd_page_is_exact(pdd->vm, props->wptr_va) || !kfd_page_is_exact(pdd->vm, props->rptr_va))
		return -EINVAL;
	if (!sim_vm_is_exact(pdd->vm, props->ring_va & PAGE_MASK, ring))
		return -EINVAL;
	if (props->type != KFD_QUEUE_COMPUTE)
		return 0;
	if (props->eop_va && (props->eop_size < KFD_EOP_SIZE ||
			      !sim_vm_is_exact(pdd->vm, props->eop_va & PAGE_MASK, PAGE_ALIGN((u64)props->eop_size))))
		return -EINVAL;
	return kfd_check_cwsr(pdd, props);
}

static bool kfd_in_range(u64 what, u64 va, u64 size)
{
	return what >= va && what - va < size;
}

bool kfd_queue_uses(struct kfd_pdd *pdd, u64 va, u64 size)
{
	struct kfd_queue *q;

	list_for_each_entry(q, &pdd->process->queues, node) {
		const struct kfd_queue_props *props = &q->props;

		if (q->pdd != pdd || !q->holds_buffers)
			continue;
		if (kfd_in_range(props->ring_va, va, size) || kfd_in_range(props->rptr_va, va, size) ||
		    kfd_in_range(props->wptr_va, va, size))
			return true;
		if (props->type == KFD_QUEUE_COMPUTE &&
		    (kfd_in_range(props->eop_va, va, size) || kfd_in_range(props->cwsr_va, va, size)))
			return true;
	}
	return false;
}

/* ---- eviction ---- */

static void kfd_evicted_clock(struct kfd_process *p, bool start)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++) {
		struct kfd_pdd *pdd = p->pdds[i];

		if (start) {
			WRITE_ONCE(pdd->evicted_since, now);
		} else {
			atomic64_add(now - pdd->evicted_since, &pdd->evicted_ns);
			WRITE_ONCE(pdd->evicted_since, 0);
		}
	}
}

void kfd_process_evict_queues(struct kfd_process *p)
{
	struct kfd_queue *q;

	if (atomic_inc_return(&p->evicted) == 1)
		kfd_evicted_clock(p, true);
	/* Who is in the middle of a packet ends it and then sees the count. */
	list_for_each_entry(q, &p->queues, node) {
		mutex_lock(&q->exec_lock);
		mutex_unlock(&q->exec_lock);
	}
}

void kfd_process_restore_queues(struct kfd_process *p)
{
	struct kfd_queue *q;

	if (!atomic_add_unless(&p->evicted, -1, 0) || atomic_read(&p->evicted))
		return;
	kfd_evicted_clock(p, false);
	list_for_each_entry(q, &p->queues, node)
		kfd_engine_kick(q);
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
	    props->sdma_engine_id >= kfd_nr_engines(pdd->gpu, KFD_QUEUE_SDMA) +
					     kfd_nr_engines(pdd->gpu, KFD_QUEUE_SDMA_XGMI))
		return -EINVAL;
	ret = kfd_doorbells_alloc(pdd);
	if (ret)
		return ret;
	ret = kfd_check_buffers(pdd, props);
	if (ret)
		return ret;
	ret = kfd_queue_create(pdd, props, NULL, &q);
	if (ret)
		return ret;
	args->queue_id = q->id;
	args->doorbell_offset = KFD_MMAP_TYPE_DOORBELL | KFD_MMAP_GPU_ID(args->gpu_id) |
				(q->doorbell_id * sizeof(u64));
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
	if (ring && !sim_vm_is_exact(q->pdd->vm, ring & PAGE_MASK,
				     PAGE_ALIGN((u64)ring_size + q->props.metadata_ring_size)))
		return -EFAULT;
	mutex_lock(&q->exec_lock);
	q->props.ring_va = ring;
	q->props.ring_size = ring_size;
	q->props.percent = args->queue_percentage & 0xff;
	q->props.priority = args->queue_priority;
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

/* Kernels run to their end before a queue stops: there is never a wave to report. */
int kfd_ioctl_get_queue_wave_state(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_queue_wave_state_args *args = data;
	struct kfd_queue *q;
	int ret = -EFAULT;

	mutex_lock(&p->lock);
	q = kfd_queue_by_id(p, args->queue_id);
	if (q) {
		ret = -EINVAL;
		if (q->props.type == KFD_QUEUE_COMPUTE && (!kfd_queue_is_active(q) || atomic_read(&p->evicted)))
			ret = 0;
	}
	mutex_unlock(&p->lock);
	if (!ret) {
		args->ctl_stack_used_size = 0;
		args->save_area_used_size = 0;
	}
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
	list_for_each_entry(other, &p->queues, node)
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
