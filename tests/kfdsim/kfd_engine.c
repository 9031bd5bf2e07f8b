// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engines: doorbells and the thread behind each user queue. A doorbell page is
 * ordinary memory, mapped when it is first written to. That fault wakes the
 * GPU's queues of the process; while they are awake they look at the doorbells
 * now and then; the first that finds nothing for a while takes the mapping away,
 * looks once more, and sleeps. So an idle queue costs nothing and no ring is lost.
 */
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kfd.h"

#define KFD_ENGINE_IDLE_MS   8	  /* awake without work */
#define KFD_ENGINE_PAUSE_MIN 20	  /* us between looks, doubled each time ... */
#define KFD_ENGINE_PAUSE_MAX 1000 /* ... up to this */
#define KFD_FETCH_DWORDS     64

/* SDMA, IH and VCN doorbells: not for compute queues. */
#define KFD_NON_CP_FIRST 0x100
#define KFD_NON_CP_LAST	 0x19f

#define KFD_GPU_PGOFF_BITS (KFD_MMAP_GPU_ID_SHIFT - PAGE_SHIFT)

/* ---- doorbells ---- */

static void kfd_reserve_doorbells(unsigned long *ids)
{
	bitmap_set(ids, KFD_NON_CP_FIRST, KFD_NON_CP_LAST - KFD_NON_CP_FIRST + 1);
	bitmap_set(ids, KFD_NON_CP_FIRST + KFD_DOORBELL_MIRROR, KFD_NON_CP_LAST - KFD_NON_CP_FIRST + 1);
}

int kfd_doorbells_alloc(struct kfd_pdd *pdd)
{
	unsigned long *ids = NULL;
	u64 *doorbells;
	int ret = 0;

	mutex_lock(&pdd->doorbell_lock);
	if (pdd->doorbells)
		goto out;
	ret = -ENOMEM;
	doorbells = alloc_pages_exact(KFD_DOORBELL_SLICE, GFP_KERNEL | __GFP_ZERO);
	if (!doorbells)
		goto out;
	ids = bitmap_zalloc(KFD_MAX_QUEUES, GFP_KERNEL);
	if (!ids) {
		free_pages_exact(doorbells, KFD_DOORBELL_SLICE);
		goto out;
	}
	kfd_reserve_doorbells(ids);
	pdd->doorbell_ids = ids;
	pdd->doorbells = doorbells;
	ret = 0;
out:
	mutex_unlock(&pdd->doorbell_lock);
	return ret;
}

void kfd_doorbells_free(struct kfd_pdd *pdd)
{
	if (pdd->doorbells)
		free_pages_exact(pdd->doorbells, KFD_DOORBELL_SLICE);
	bitmap_free(pdd->doorbell_ids);
}

u64 kfd_doorbell_read(const struct kfd_queue *q)
{
	return smp_load_acquire(&q->pdd->doorbells[q->doorbell_id]);
}

/* A mapping begins with the first doorbell, whatever the low bits of its offset: those go with the pointer. */
static void *kfd_doorbell_tag(struct kfd_pdd *pdd, unsigned long pgoff)
{
	return (void *)((unsigned long)pdd | (pgoff % KFD_DOORBELL_PAGES));
}

static vm_fault_t kfd_doorbell_fault(struct vm_fault *vmf)
{
	unsigned long tag = (unsigned long)vmf->vma->vm_private_data, first = tag % KFD_DOORBELL_PAGES;
	struct kfd_pdd *pdd = (void *)(tag - first);
	void *page = (void *)pdd->doorbells + ((vmf->pgoff - first) % KFD_DOORBELL_PAGES) * PAGE_SIZE;
	vm_fault_t ret;

	/* With the lock: between an engine's taking the mapping away and its last look there must be no new one. */
	mutex_lock(&pdd->doorbell_lock);
	ret = vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(virt_to_page(page)));
	pdd->doorbells_mapped = true;
	pdd->doorbell_seq++;
	mutex_unlock(&pdd->doorbell_lock);
	wake_up_all(&pdd->doorbell_wq);
	return ret;
}

static const struct vm_operations_struct kfd_doorbell_vm_ops = {
	.fault = kfd_doorbell_fault,
};

int kfd_doorbells_mmap(struct kfd_pdd *pdd, struct vm_area_struct *vma)
{
	int ret;

	if (vma->vm_end - vma->vm_start != KFD_DOORBELL_SLICE)
		return -EINVAL;
	ret = kfd_doorbells_alloc(pdd);
	if (ret)
		return ret;
	WRITE_ONCE(pdd->doorbell_pgoff, vma->vm_pgoff >> KFD_GPU_PGOFF_BITS << KFD_GPU_PGOFF_BITS);
	/* A private one is copied when it is written to: it shows doorbells and rings none, so it need not fault. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return remap_pfn_range(vma, vma->vm_start, page_to_pfn(virt_to_page(pdd->doorbells)),
				       KFD_DOORBELL_SLICE, vma->vm_page_prot);
	vma->vm_private_data = kfd_doorbell_tag(pdd, vma->vm_pgoff);
	vma->vm_ops = &kfd_doorbell_vm_ops;
	return 0;
}

/* From now on a CPU that rings a doorbell faults. Returns the count of faults so far. */
static unsigned int kfd_doorbells_arm(struct kfd_pdd *pdd)
{
	struct address_space *mapping = pdd->process->inode->i_mapping;
	unsigned int seq;

	mutex_lock(&pdd->doorbell_lock);
	if (pdd->doorbells_mapped)
		unmap_mapping_pages(mapping, READ_ONCE(pdd->doorbell_pgoff), 1UL << KFD_GPU_PGOFF_BITS, true);
	pdd->doorbells_mapped = false;
	seq = pdd->doorbell_seq;
	mutex_unlock(&pdd->doorbell_lock);
	return seq;
}

/* ---- the thread ---- */

bool kfd_queue_is_active(const struct kfd_queue *q)
{
	return q->props.ring_va && q->props.ring_size && q->props.percent;
}

/* Executes at most one packet. 1: did something; 0: nothing to do; -EAGAIN: waits for memory to change. */
static int kfd_engine_step(struct kfd_queue *q)
{
	int ret = 0;

	mutex_lock(&q->exec_lock);
	if (kfd_queue_may_run(q) && kfd_queue_is_active(q) && !q->mqd.hung)
		ret = q->step(q);
	mutex_unlock(&q->exec_lock);
	return ret;
}

static void kfd_engine_sleep(struct kfd_queue *q)
{
	struct kfd_pdd *pdd = q->pdd;
	unsigned int seq = kfd_doorbells_arm(pdd);

	WRITE_ONCE(q->kicked, false);
	smp_mb(); /* a kick from here on counts, one from before is seen by the step */
	if (kfd_engine_step(q))
		return;
	wait_event_idle(pdd->doorbell_wq,
			kthread_should_stop() || READ_ONCE(q->kicked) || READ_ONCE(pdd->doorbell_seq) != seq);
}

static int kfd_engine_thread(void *data)
{
	struct kfd_queue *q = data;
	unsigned long idle_since = jiffies;
	unsigned int pause = KFD_ENGINE_PAUSE_MIN;

	while (!kthread_should_stop()) {
		int ret = kfd_engine_step(q);

		if (!ret && time_after(jiffies, idle_since + msecs_to_jiffies(KFD_ENGINE_IDLE_MS))) {
			kfd_engine_sleep(q);
			ret = 1;
		}
		if (ret > 0) {
			idle_since = jiffies;
			pause = KFD_ENGINE_PAUSE_MIN;
			cond_resched();
			continue;
		}
		usleep_range(pause, pause * 2);
		pause = min(pause * 2, KFD_ENGINE_PAUSE_MAX);
	}
	return 0;
}

int kfd_engine_start(struct kfd_queue *q)
{
	struct task_struct *thread;

	q->fetch_size = KFD_FETCH_DWORDS;
	q->fetched = kmalloc_array(q->fetch_size, sizeof(u32), GFP_KERNEL);
	if (!q->fetched)
		return -ENOMEM;
	thread = kthread_run(kfd_engine_thread, q, "kfdsim-%d-q%u", q->process->lead_thread->pid, q->id);
	if (!IS_ERR(thread)) {
		q->thread = thread;
		return 0;
	}
	kvfree(q->fetched);
	q->fetched = NULL;
	return PTR_ERR(thread);
}

void kfd_engine_stop(struct kfd_queue *q)
{
	if (q->thread)
		kthread_stop(q->thread);
	q->thread = NULL;
	kvfree(q->fetched);
	q->fetched = NULL;
}

void kfd_engine_kick(struct kfd_queue *q)
{
	WRITE_ONCE(q->kicked, true);
	wake_up_all(&q->pdd->doorbell_wq);
}

void kfd_engine_save(struct kfd_queue *q, struct kfd_mqd *mqd)
{
	mutex_lock(&q->exec_lock);
	*mqd = q->mqd;
	mqd->magic = KFD_MQD_MAGIC;
	mqd->doorbell = kfd_doorbell_read(q);
	mutex_unlock(&q->exec_lock);
}

void kfd_engine_hang(struct kfd_queue *q, const char *what, u64 va)
{
	q->mqd.hung = 1;
	/* The memory of a process that is just going away is no fault of its queue. */
	if (!atomic_read(&q->process->mm->mm_users))
		return;
	pr_err("kfdsim: gpu %#x: queue %u of process %d stopped for good at read pointer %#llx: %s (VA %#llx)\n",
	       q->pdd->gpu->node->gpu_id, q->id, q->process->lead_thread->pid, q->mqd.rptr, what, va);
}

/* A person may have let the GPU hang, or taken it away. Called when there is something to do. */
int kfd_engine_check(struct kfd_queue *q)
{
	int ret = sim_engine_check(q->pdd->gpu);

	if (ret && ret != -EAGAIN)
		kfd_engine_hang(q, "the GPU is lost", 0);
	/* The kernel does not look whose render node it is given; the GPU then walks another one's page tables. */
	if (!ret && q->pdd->vm->gpu != q->pdd->gpu) {
		kfd_engine_hang(q, "its address space is that of another GPU", q->pdd->vm->gpu->node->gpu_id);
		ret = -EFAULT;
	}
	return ret;
}

/* ---- SDMA ---- */

/* Copies @dwords from the ring at the read pointer into q->fetched. */
static int kfd_ring_fetch(struct kfd_queue *q, u32 dwords)
{
	u64 mask = q->props.ring_size - 1, at = q->mqd.rptr & mask, fault = 0;
	size_t len = dwords * sizeof(u32), first = min_t(u64, len, q->props.ring_size - at);
	int ret;

	if (dwords > q->fetch_size) {
		u32 *bigger = kvmalloc_array(dwords, sizeof(u32), GFP_KERNEL);

		if (!bigger)
			return -ENOMEM;
		kvfree(q->fetched);
		q->fetched = bigger;
		q->fetch_size = dwords;
	}
	ret = sim_vm_read(q->pdd->vm, q->props.ring_va + at, q->fetched, first, &fault);
	if (!ret && first < len)
		ret = sim_vm_read(q->pdd->vm, q->props.ring_va, (u8 *)q->fetched + first, len - first, &fault);
	if (ret == -EFAULT)
		kfd_engine_hang(q, "the ring is not mapped", fault);
	return ret;
}

/* How many dwords the packet at the read pointer has, executed; 0 while it is not complete in the ring. */
static int kfd_sdma_packet(struct kfd_queue *q, u32 pending)
{
	u32 dwords = min_t(u32, pending, KFD_FETCH_DWORDS);
	int ret;

	/* However much there is in a large ring, the packet is no longer than this. */
	pending = min(pending, SIM_SDMA_MAX_PACKET_DW);
	for (;;) {
		ret = kfd_ring_fetch(q, dwords);
		if (ret)
			return ret;
		ret = sim_sdma_execute(&q->sdma, q->fetched, dwords);
		if (ret || dwords == pending)
			return ret;
		dwords = pending;
	}
}

static void kfd_sdma_account(struct kfd_queue *q, u64 bytes_before, u64 began)
{
	q->mqd.bytes += q->sdma.bytes_copied - bytes_before;
	q->mqd.packets++;
	atomic64_add(div_u64(ktime_get_ns() - began, NSEC_PER_USEC), &q->pdd->sdma_us);
}

int kfd_sdma_step(struct kfd_queue *q)
{
	u64 doorbell = kfd_doorbell_read(q), pending = doorbell - q->mqd.rptr;
	u64 bytes = q->sdma.bytes_copied, began = ktime_get_ns(), fault = 0;
	int ret;

	if (!pending)
		return 0;
	if (pending > q->props.ring_size || pending % sizeof(u32)) {
		kfd_engine_hang(q, "the doorbell was rung with a write pointer that is no place in the ring", doorbell);
		return 0;
	}
	ret = kfd_engine_check(q);
	if (!ret)
		ret = kfd_sdma_packet(q, min_t(u64, pending / sizeof(u32), U32_MAX));
	if (ret == 0 || q->mqd.hung)
		return 0;
	if (ret == -EAGAIN || ret == -ENOMEM || ret == -ECANCELED)
		return -EAGAIN;
	if (ret < 0) {
		kfd_engine_hang(q, "the packet there failed", q->sdma.fault_va);
		kfd_event_memory_fault(q->pdd, q->sdma.fault_va);
		return 0;
	}
	kfd_sdma_account(q, bytes, began);
	q->mqd.rptr += (u64)ret * sizeof(u32);
	if (sim_vm_write(q->pdd->vm, q->props.rptr_va, &q->mqd.rptr, sizeof(u64), &fault)) {
		kfd_engine_hang(q, "the read pointer is not mapped for writing", fault);
		kfd_event_memory_fault(q->pdd, fault);
	}
	return 1;
}
