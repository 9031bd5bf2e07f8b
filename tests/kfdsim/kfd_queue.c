// SPDX-License-Identifier: GPL-2.0-only
/*
 * User queues: their life, the numbers that each takes (queue id, SDMA engine
 * and queue, doorbell), eviction. The ioctls are in kfd_queue_ioctl.c, what
 * makes a queue move is in kfd_engine.c.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "kfd.h"

#define KFD_QUEUES_PER_GPU	 127 /* of one process; 255 on gfx94x and later */
#define KFD_QUEUES_PER_GPU_GFX94 255
#define KFD_QUEUES_PER_DEVICE	 4096
#define KFD_SDMA_DOORBELL_BASE	 0x100
#define KFD_SDMA_DOORBELL_STRIDE 10
#define KFD_SDMA_DOORBELL_ALIGN	 4 /* gfx94x, gfx95x */

u32 kfd_gfx(const struct sim_gpu *gpu)
{
	return sim_gpu_prop(gpu, SIM_PROP_gfx_target_version);
}

u32 kfd_num_xcc(const struct sim_gpu *gpu)
{
	return max(sim_gpu_prop(gpu, SIM_PROP_num_xcc), 1ULL);
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

struct kfd_queue *kfd_queue_by_id(struct kfd_process *p, u32 id)
{
	struct kfd_queue *q;

	list_for_each_entry (q, &p->queues, node)
		if (q->id == id)
			return q;
	return NULL;
}

/* ---- SDMA engines: id = queue * engines + engine, per GPU, for all processes ---- */

unsigned int kfd_nr_engines(const struct sim_gpu *gpu, u32 type)
{
	return sim_gpu_prop(gpu,
			    type == KFD_QUEUE_SDMA_XGMI ? SIM_PROP_num_sdma_xgmi_engines : SIM_PROP_num_sdma_engines);
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
		/* Up to 6.12 a number that there is none of looks like a busy one. */
		if (id >= nr)
			ret = sim_machine.desc.kernel.release < 618 ? -EBUSY : -EINVAL;
		else
			ret = test_bit(id, busy) ? -EBUSY : 0;
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

/* ---- doorbells: fixed for an SDMA queue of a partition, any free one for a compute queue ---- */

static u32 kfd_sdma_doorbell(const struct kfd_queue *q)
{
	const struct sim_gpu *gpu = q->pdd->gpu;
	u32 engines = kfd_nr_engines(gpu, KFD_QUEUE_SDMA) + kfd_nr_engines(gpu, KFD_QUEUE_SDMA_XGMI);
	u32 engine = gpu->node->partition * engines + kfd_sdma_engine(q);
	u32 base = KFD_SDMA_DOORBELL_BASE + KFD_SDMA_DOORBELL_STRIDE * engine;
	u32 nr = q->sdma_id / max(kfd_nr_engines(gpu, q->props.type), 1U);

	if (kfd_is_gfx94(gpu) && sim_machine.desc.kernel.align_sdma_doorbells)
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
	kfd_waves_free(q);
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

/* The first XCC's MQD is the queue's; those of the others have to be there and like it. */
static void kfd_queue_restore_state(struct kfd_queue *q, const struct kfd_queue_restore *restore)
{
	u32 size = kfd_queue_mqd_size(q->pdd->gpu, q->props.type), xcc, xccs = 1;
	u64 stacks = (u64)kfd_ctl_stack_size(q) * kfd_num_xcc(q->pdd->gpu);
	struct kfd_mqd mqd = {};

	memcpy(&q->mqd, restore->state, min_t(size_t, sizeof(q->mqd), restore->mqd_size));
	if (q->mqd.magic != KFD_MQD_MAGIC)
		kfd_engine_hang(q, "the restored MQD does not come from a simulated GPU; first word", q->mqd.magic);
	if (!is_power_of_2(q->props.ring_size))
		kfd_engine_hang(q, "the restored ring's size is no power of two", q->props.ring_size);
	if (q->props.type == KFD_QUEUE_COMPUTE)
		xccs = kfd_num_xcc(q->pdd->gpu);
	for (xcc = 1; xcc < xccs; xcc++) {
		u32 at = xcc * size;

		/* Linux, too, looks for them there, whatever size the record gives the first one. */
		if (sim_machine.desc.kernel.save_all_xccs && at + sizeof(mqd) <= restore->mqd_size + restore->ctl_stack_size)
			memcpy(&mqd, restore->state + at, sizeof(mqd));
		if (mqd.magic != KFD_MQD_MAGIC || mqd.xcc != xcc || mqd.wave != q->mqd.wave) {
			kfd_engine_hang(q, "the restored state is not that of all XCCs; first without one", xcc);
			return;
		}
	}
	if (q->ctl_stack)
		memcpy(q->ctl_stack, restore->state + restore->mqd_size, min_t(u64, stacks, restore->ctl_stack_size));
}

static void kfd_queue_init_engine(struct kfd_queue *q, const struct kfd_queue_restore *restore)
{
	q->step = kfd_aql_step;
	if (kfd_is_sdma(q->props.type)) {
		q->step = kfd_sdma_step;
		sim_sdma_init(&q->sdma, q->pdd->vm);
		q->sdma.engine = kfd_sdma_engine(q);
		q->sdma.trap = kfd_sdma_trap;
		q->sdma.stop = kfd_engine_should_stop;
		q->sdma.ctx = q;
	}
	q->mqd.ctl_stack_size = kfd_ctl_stack_size(q);
	if (restore)
		kfd_queue_restore_state(q, restore);
	WRITE_ONCE(q->pdd->doorbells[q->doorbell_id], q->mqd.doorbell);
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
	err = kfd_waves_init(q);
	if (err)
		goto err_free;
	kfd_queue_init_engine(q, restore);
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

static bool kfd_in_range(u64 what, u64 va, u64 size)
{
	return what >= va && what - va < size;
}

bool kfd_queue_uses(struct kfd_pdd *pdd, u64 va, u64 size)
{
	struct kfd_queue *q;

	if (sim_machine.desc.kernel.release < 612)
		return false;
	list_for_each_entry (q, &pdd->process->queues, node) {
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

bool kfd_queue_may_run(const struct kfd_queue *q)
{
	return !atomic_read(&q->process->evicted) && !READ_ONCE(q->pdd->faulted);
}

static void kfd_evicted_clock(struct kfd_process *p, bool start)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++) {
		struct kfd_pdd *pdd = p->pdds[i];

		/* Evicted for good, which is an eviction that never ends. */
		if (READ_ONCE(pdd->faulted))
			continue;
		if (start) {
			WRITE_ONCE(pdd->evicted_since, now);
		} else {
			atomic64_add(now - pdd->evicted_since, &pdd->evicted_ns);
			WRITE_ONCE(pdd->evicted_since, 0);
		}
	}
}

void kfd_process_evict_queues(struct kfd_process *p, u32 trigger)
{
	struct kfd_queue *q;
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		kfd_smi_event(p->pdds[i]->gpu, p, KFD_SMI_EVENT_QUEUE_EVICTION, "%lld -%d %x %u\n",
			      ktime_get_boottime_ns(), p->lead_thread->pid, p->pdds[i]->gpu->node->gpu_id, trigger);
	if (atomic_inc_return(&p->evicted) == 1)
		kfd_evicted_clock(p, true);
	/* Who is in the middle of a packet ends it, a kernel aside, and then sees the count. */
	list_for_each_entry (q, &p->queues, node) {
		mutex_lock(&q->exec_lock);
		kfd_waves_preempt(q);
		mutex_unlock(&q->exec_lock);
	}
}

void kfd_process_restore_queues(struct kfd_process *p)
{
	struct kfd_queue *q;
	unsigned int i;

	if (!atomic_add_unless(&p->evicted, -1, 0) || atomic_read(&p->evicted))
		return;
	for (i = 0; i < p->nr_pdds; i++)
		kfd_smi_event(p->pdds[i]->gpu, p, KFD_SMI_EVENT_QUEUE_RESTORE, "%lld -%d %x 0\n",
			      ktime_get_boottime_ns(), p->lead_thread->pid, p->pdds[i]->gpu->node->gpu_id);
	kfd_evicted_clock(p, false);
	list_for_each_entry (q, &p->queues, node)
		kfd_engine_kick(q);
}
