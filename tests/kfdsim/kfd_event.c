// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD events: created, set, reset and waited for by a process, signalled by
 * the engines. All state is under one spinlock per process; the signal page,
 * whose access may sleep, is only touched without it. A waiter that gets a
 * signal goes back to user space with what is left of its time, so that it
 * can be frozen, saved and restarted.
 */
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_gem.h>

#include "kfd.h"

#define KFD_FIRST_OTHER_EVENT 0x40000000 /* ids of events without a slot */
#define KFD_OLD_SIGNAL_SIZE   (256 * 8)	 /* what a process sees of a page that it did not map itself */
#define KFD_TIMEOUT_IMMEDIATE 0U
#define KFD_TIMEOUT_INFINITE  (~0U)

struct kfd_event {
	u32 id;
	u32 type;
	bool auto_reset;
	bool signaled;
	u64 age;
	struct list_head waiters;
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
	};
};

/* One call of WAIT_EVENTS. */
struct kfd_wait {
	wait_queue_head_t wq;
	bool all;
	u32 nr;
	struct kfd_waiter *waiters;
	struct kfdsim_event_data *data;
};

/* ... and one of the events that it waits for. */
struct kfd_waiter {
	struct list_head node;	 /* event->waiters */
	struct kfd_event *event; /* NULL once destroyed */
	struct kfd_wait *wait;
	bool activated;
	bool by_age;
};

static bool kfd_has_slot(u32 type)
{
	return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

/* ---- the signal page ---- */

static int kfd_slot_write(struct kfd_process *p, u32 id, u64 value)
{
	if (p->signal_bo)
		return sim_bo_access(p->signal_bo, id * sizeof(u64), &value, sizeof(value), true);
	if (p->signal_page)
		WRITE_ONCE(p->signal_page[id], value);
	return 0;
}

static int kfd_slots_read(struct kfd_process *p, u32 first, u64 *values, u32 n)
{
	if (p->signal_bo)
		return sim_bo_access(p->signal_bo, first * sizeof(u64), values, n * sizeof(u64), false);
	if (!p->signal_page)
		return -ENOENT;
	memcpy(values, &p->signal_page[first], n * sizeof(u64));
	return 0;
}

static int kfd_signal_bo_clear(struct sim_bo *bo)
{
	void *ones = kmalloc(PAGE_SIZE, GFP_KERNEL);
	u64 at;
	int ret = 0;

	if (!ones)
		return -ENOMEM;
	memset(ones, 0xff, PAGE_SIZE);
	for (at = 0; !ret && at < KFD_SIGNAL_PAGE_SIZE; at += PAGE_SIZE)
		ret = sim_bo_access(bo, at, ones, PAGE_SIZE, true);
	kfree(ones);
	return ret;
}

int kfd_events_set_page(struct kfd_process *p, u64 handle)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, KFD_HANDLE_GPU_ID(handle));
	struct kfd_bo *bo;
	int ret;

	if (p->signal_bo || p->signal_page || !pdd)
		return -EINVAL;
	if (!pdd->vm)
		return -ENODEV;
	bo = kfd_bo_by_handle(p, handle);
	if (!bo || (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) || bo->size < KFD_SIGNAL_PAGE_SIZE)
		return -EINVAL;
	ret = kfd_signal_bo_clear(bo->bo);
	if (ret)
		return ret;
	drm_gem_object_get(&bo->bo->base);
	spin_lock(&p->event_lock);
	p->signal_size = bo->size;
	p->signal_handle = handle;
	p->signal_bo = bo->bo;
	spin_unlock(&p->event_lock);
	return 0;
}

/* Kernels before 7.3 make a page for a process that brings none. */
static int kfd_signal_page_alloc(struct kfd_process *p)
{
	void *page;

	if (p->signal_bo || p->signal_page)
		return 0;
	if (sim_machine.desc.kernel.mmap_user_id)
		return -ENOMEM;
	page = alloc_pages_exact(KFD_SIGNAL_PAGE_SIZE, GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	memset(page, 0xff, KFD_SIGNAL_PAGE_SIZE);
	spin_lock(&p->event_lock);
	if (!p->signal_bo && !p->signal_page) {
		p->signal_size = KFD_OLD_SIGNAL_SIZE;
		smp_store_release(&p->signal_page, page);
		page = NULL;
	}
	spin_unlock(&p->event_lock);
	if (page)
		free_pages_exact(page, KFD_SIGNAL_PAGE_SIZE);
	return 0;
}

int kfd_events_mmap(struct kfd_process *p, struct vm_area_struct *vma)
{
	unsigned long size = vma->vm_end - vma->vm_start;
	u64 *page = smp_load_acquire(&p->signal_page);
	int ret;

	if (sim_machine.desc.kernel.mmap_user_id || size > KFD_SIGNAL_PAGE_SIZE || !page)
		return -EINVAL;
	ret = remap_pfn_range(vma, vma->vm_start, page_to_pfn(virt_to_page(page)), size, vma->vm_page_prot);
	if (ret)
		return ret;
	spin_lock(&p->event_lock);
	p->signal_size = size;
	spin_unlock(&p->event_lock);
	return 0;
}

/* ---- events, under event_lock ---- */

static void kfd_event_set(struct kfd_event *ev)
{
	struct kfd_waiter *waiter;

	ev->signaled = !ev->auto_reset || list_empty(&ev->waiters);
	/* Ages 0 ("none") and 1 ("new") do not come again. */
	if (!++ev->age)
		ev->age = 2;
	list_for_each_entry (waiter, &ev->waiters, node) {
		waiter->activated = true;
		wake_up(&waiter->wait->wq);
	}
}

static void kfd_event_destroy(struct kfd_process *p, struct kfd_event *ev)
{
	struct kfd_waiter *waiter, *next;

	list_for_each_entry_safe (waiter, next, &ev->waiters, node) {
		waiter->event = NULL;
		list_del_init(&waiter->node);
		wake_up(&waiter->wait->wq);
	}
	if (kfd_has_slot(ev->type))
		p->nr_signal_events--;
	idr_remove(&p->events, ev->id);
	kfree(ev);
	sim_object_add(SIM_OBJ_EVENT, -1);
}

static int kfd_event_number(struct kfd_process *p, struct kfd_event *ev, const u32 *restore_id)
{
	int first = KFD_FIRST_OTHER_EVENT, end = 0;

	if (kfd_has_slot(ev->type)) {
		if (p->nr_signal_events == p->signal_size / sizeof(u64))
			return -ENOSPC;
		if (restore_id && *restore_id >= KFD_SIGNAL_EVENT_LIMIT)
			return -EINVAL;
		first = 1;
		end = min_t(u64, p->signal_size / sizeof(u64), KFD_SIGNAL_EVENT_LIMIT);
	}
	if (restore_id) {
		first = *restore_id;
		end = first == INT_MAX ? 0 : first + 1;
		if (!first)
			return -ENOSPC; /* stands for "no event" in traps */
	}
	return idr_alloc(&p->events, ev, first, end, GFP_NOWAIT);
}

static struct kfd_event *kfd_event_new(u32 type, bool auto_reset)
{
	struct kfd_event *ev = kzalloc(sizeof(*ev), GFP_KERNEL);

	if (!ev)
		return NULL;
	ev->type = type;
	ev->auto_reset = auto_reset;
	INIT_LIST_HEAD(&ev->waiters);
	return ev;
}

/* Takes over @ev, also when it fails. */
static int kfd_event_add(struct kfd_process *p, struct kfd_event *ev, const u32 *restore_id)
{
	u32 id = 0;
	int ret;

	if (kfd_has_slot(ev->type)) {
		ret = kfd_signal_page_alloc(p);
		if (ret)
			goto err_free;
	}
	idr_preload(GFP_KERNEL);
	spin_lock(&p->event_lock);
	ret = kfd_event_number(p, ev, restore_id);
	if (ret >= 0) {
		ev->id = id = ret;
		p->nr_signal_events += kfd_has_slot(ev->type);
		sim_object_add(SIM_OBJ_EVENT, 1);
	}
	spin_unlock(&p->event_lock);
	idr_preload_end();
	if (ret < 0)
		goto err_free;
	/* Another thread may have destroyed the event by now: only its number is safe to use. */
	if (id < KFD_SIGNAL_EVENT_LIMIT)
		kfd_slot_write(p, id, KFD_UNSIGNALED);
	return id;

err_free:
	kfree(ev);
	return ret;
}

void kfd_events_init(struct kfd_process *p)
{
	spin_lock_init(&p->event_lock);
	idr_init(&p->events);
	p->nr_signal_events = 1; /* number 0 */
}

void kfd_events_free(struct kfd_process *p)
{
	struct kfd_event *ev;
	int id;

	spin_lock(&p->event_lock);
	idr_for_each_entry (&p->events, ev, id)
		kfd_event_destroy(p, ev);
	spin_unlock(&p->event_lock);
	idr_destroy(&p->events);
	if (p->signal_bo)
		drm_gem_object_put(&p->signal_bo->base);
	if (p->signal_page)
		free_pages_exact(p->signal_page, KFD_SIGNAL_PAGE_SIZE);
}

/* ---- signalled by engines ---- */

/* False when there is no such event. */
static bool kfd_event_raise(struct kfd_process *p, u32 id)
{
	struct kfd_event *ev;
	bool found;

	spin_lock(&p->event_lock);
	ev = id ? idr_find(&p->events, id) : NULL;
	found = ev && kfd_has_slot(ev->type);
	spin_unlock(&p->event_lock);
	if (!found)
		return false;
	/* Acknowledged first: a signal that comes in between is written again and raises a trap of its own. */
	kfd_slot_write(p, id, KFD_UNSIGNALED);
	spin_lock(&p->event_lock);
	ev = idr_find(&p->events, id);
	if (ev)
		kfd_event_set(ev);
	spin_unlock(&p->event_lock);
	return true;
}

void kfd_event_interrupt(struct kfd_process *p, u32 id)
{
	const u32 batch = PAGE_SIZE / sizeof(u64);
	u32 first, i;
	u64 *slots;

	if (id < KFD_SIGNAL_EVENT_LIMIT && kfd_event_raise(p, id))
		return;
	/* The trap names no event: all whose slots were written. */
	slots = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!slots)
		return;
	for (first = 0; first < KFD_SIGNAL_EVENT_LIMIT; first += batch) {
		if (kfd_slots_read(p, first, slots, batch))
			break;
		for (i = 0; i < batch; i++)
			if (slots[i] != KFD_UNSIGNALED)
				kfd_event_raise(p, first + i);
	}
	kfree(slots);
}

void kfd_event_memory_fault(struct kfd_pdd *pdd, u64 va)
{
	struct kfd_hsa_memory_exception_data data = {
		.failure.NotPresent = 1,
		.va = va,
		.gpu_id = pdd->user_gpu_id,
	};
	struct kfd_process *p = pdd->process;
	struct kfd_event *ev;
	int id = KFD_FIRST_OTHER_EVENT;

	/* The driver evicts them for that, and nothing ever lets them run again. */
	WRITE_ONCE(pdd->faulted, true);
	kfd_smi_event(pdd->gpu, NULL, KFD_SMI_EVENT_VMFAULT, "%x:%.16s\n", p->lead_thread->pid, p->lead_thread->comm);
	spin_lock(&p->event_lock);
	idr_for_each_entry_continue (&p->events, ev, id) {
		if (ev->type != KFD_IOC_EVENT_MEMORY)
			continue;
		ev->memory = data;
		kfd_event_set(ev);
	}
	spin_unlock(&p->event_lock);
}

/* ---- ioctls but waiting ---- */

int kfd_ioctl_create_event(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_create_event_args *args = data;
	struct kfd_event *ev;
	int ret;

	if (args->event_page_offset) {
		mutex_lock(&p->lock);
		ret = kfd_events_set_page(p, args->event_page_offset);
		mutex_unlock(&p->lock);
		if (ret)
			return ret;
	}
	args->event_page_offset = 0;
	ev = kfd_event_new(args->event_type, args->auto_reset);
	if (!ev)
		return -ENOMEM;
	ev->age = 1;
	ret = kfd_event_add(p, ev, NULL);
	if (ret < 0)
		return ret;
	args->event_id = ret;
	args->event_trigger_data = ret;
	if (kfd_has_slot(args->event_type)) {
		args->event_page_offset = KFD_MMAP_TYPE_EVENTS;
		args->event_slot_index = ret;
	}
	return 0;
}

int kfd_ioctl_destroy_event(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_destroy_event_args *args = data;
	struct kfd_event *ev;

	spin_lock(&p->event_lock);
	ev = idr_find(&p->events, args->event_id);
	if (ev)
		kfd_event_destroy(p, ev);
	spin_unlock(&p->event_lock);
	return ev ? 0 : -EINVAL;
}

static int kfd_event_set_by_cpu(struct kfd_process *p, u32 id, bool set)
{
	struct kfd_event *ev;
	int ret = -EINVAL;

	spin_lock(&p->event_lock);
	ev = idr_find(&p->events, id);
	if (ev && ev->type == KFD_IOC_EVENT_SIGNAL) {
		if (set)
			kfd_event_set(ev);
		else
			ev->signaled = false;
		ret = 0;
	}
	spin_unlock(&p->event_lock);
	return ret;
}

int kfd_ioctl_set_event(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_event_args *args = data;

	return kfd_event_set_by_cpu(p, args->event_id, true);
}

int kfd_ioctl_reset_event(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_reset_event_args *args = data;

	return kfd_event_set_by_cpu(p, args->event_id, false);
}

/* ---- waiting ---- */

/* Under event_lock. */
static u32 kfd_wait_result(const struct kfd_wait *wait)
{
	u32 i, activated = 0;

	for (i = 0; i < wait->nr; i++) {
		if (!wait->waiters[i].event)
			return KFD_IOC_WAIT_RESULT_FAIL;
		if (wait->waiters[i].activated && !wait->all)
			return KFD_IOC_WAIT_RESULT_COMPLETE;
		activated += wait->waiters[i].activated;
	}
	return activated == wait->nr ? KFD_IOC_WAIT_RESULT_COMPLETE : KFD_IOC_WAIT_RESULT_TIMEOUT;
}

static bool kfd_wait_over(struct kfd_process *p, const struct kfd_wait *wait)
{
	u32 result;

	spin_lock(&p->event_lock);
	result = kfd_wait_result(wait);
	spin_unlock(&p->event_lock);
	return result != KFD_IOC_WAIT_RESULT_TIMEOUT;
}

/* Under event_lock. An auto-reset event that is already signalled is consumed here. */
static int kfd_wait_join(struct kfd_process *p, struct kfd_wait *wait, struct kfd_waiter *waiter, u32 i)
{
	struct kfd_event *ev = idr_find(&p->events, wait->data[i].event_id);
	u64 age = wait->data[i].last_event_age;

	if (!ev)
		return -EINVAL;
	waiter->event = ev;
	waiter->wait = wait;
	waiter->activated = ev->signaled;
	if (ev->auto_reset)
		ev->signaled = false;
	if (ev->type == KFD_IOC_EVENT_SIGNAL && age && sim_machine.desc.kernel.kfd_minor >= 14) {
		waiter->by_age = true;
		waiter->activated |= ev->age != age;
	}
	if (!waiter->activated)
		list_add_tail(&waiter->node, &ev->waiters);
	return 0;
}

/* Under event_lock. @undo: the call will be made again, what it consumed must be there then. */
static void kfd_wait_leave(struct kfd_wait *wait, bool undo)
{
	u32 i;

	for (i = 0; i < wait->nr; i++) {
		struct kfd_waiter *waiter = &wait->waiters[i];

		if (!waiter->event)
			continue;
		list_del_init(&waiter->node);
		if (undo && waiter->activated && waiter->event->auto_reset)
			kfd_event_set(waiter->event);
	}
}

/* Under event_lock. What the process learns about the events that came. */
static void kfd_wait_report(struct kfd_wait *wait)
{
	u32 i;

	for (i = 0; i < wait->nr; i++) {
		struct kfd_waiter *waiter = &wait->waiters[i];
		const struct kfd_event *ev = waiter->event;

		if (!waiter->activated)
			continue;
		if (ev->type == KFD_IOC_EVENT_MEMORY)
			wait->data[i].memory = ev->memory;
		else if (ev->type == KFD_IOC_EVENT_HW_EXCEPTION)
			wait->data[i].hw = ev->hw;
		else if (waiter->by_age)
			wait->data[i].last_event_age = ev->age;
	}
}

static long kfd_wait_jiffies(u32 timeout_ms)
{
	if (timeout_ms == KFD_TIMEOUT_IMMEDIATE)
		return 0;
	if (timeout_ms == KFD_TIMEOUT_INFINITE)
		return MAX_SCHEDULE_TIMEOUT;
	return msecs_to_jiffies(min_t(u32, timeout_ms, INT_MAX)) + 1;
}

/* Sleeps until the wait is over, the time is up (0), or a signal comes (-ERESTARTSYS, rest in *timeout_ms). */
static int kfd_wait_sleep(struct kfd_process *p, struct kfd_wait *wait, u32 *timeout_ms)
{
	long timeout = kfd_wait_jiffies(*timeout_ms), left;
	unsigned long began = jiffies;

	left = wait_event_interruptible_timeout(wait->wq, kfd_wait_over(p, wait), timeout);
	if (left >= 0)
		return 0;
	if (fatal_signal_pending(current))
		return -EINTR;
	if (*timeout_ms != KFD_TIMEOUT_IMMEDIATE && *timeout_ms != KFD_TIMEOUT_INFINITE)
		*timeout_ms = jiffies_to_msecs(max(timeout - 1 - (long)(jiffies - began), 0L));
	return -ERESTARTSYS;
}

static int kfd_wait(struct kfd_process *p, struct kfd_wait *wait, struct kfd_ioctl_wait_events_args *args)
{
	int ret = 0;
	u32 i;

	spin_lock(&p->event_lock);
	for (i = 0; !ret && i < wait->nr; i++)
		ret = kfd_wait_join(p, wait, &wait->waiters[i], i);
	spin_unlock(&p->event_lock);

	if (!ret)
		ret = kfd_wait_sleep(p, wait, &args->timeout);

	spin_lock(&p->event_lock);
	if (!ret) {
		args->wait_result = kfd_wait_result(wait);
		if (args->wait_result == KFD_IOC_WAIT_RESULT_COMPLETE)
			kfd_wait_report(wait);
	}
	kfd_wait_leave(wait, ret == -ERESTARTSYS);
	spin_unlock(&p->event_lock);
	return ret;
}

static int kfd_wait_user(struct kfd_process *p, struct kfd_wait *wait, struct kfd_ioctl_wait_events_args *args)
{
	struct kfdsim_event_data __user *user = u64_to_user_ptr(args->events_ptr);
	size_t size = wait->nr * sizeof(*wait->data);
	u32 i;
	int ret;

	if (!wait->waiters || !wait->data)
		return -ENOMEM;
	for (i = 0; i < wait->nr; i++)
		INIT_LIST_HEAD(&wait->waiters[i].node);
	if (copy_from_user(wait->data, user, size))
		return -EFAULT;
	ret = kfd_wait(p, wait, args);
	if (!ret && args->wait_result == KFD_IOC_WAIT_RESULT_COMPLETE && copy_to_user(user, wait->data, size))
		ret = -EFAULT;
	return ret;
}

int kfd_ioctl_wait_events(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_wait_events_args *args = data;
	struct kfd_wait wait = { .nr = args->num_events, .all = args->wait_for_all };
	int ret;

	init_waitqueue_head(&wait.wq);
	/* No limit before. */
	if (wait.nr > KFD_SIGNAL_EVENT_LIMIT && sim_machine.desc.kernel.release >= 702) {
		args->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
		return -ENOMEM;
	}
	wait.waiters = kcalloc(wait.nr, sizeof(*wait.waiters), GFP_KERNEL | __GFP_NOWARN);
	wait.data = kvcalloc(wait.nr, sizeof(*wait.data), GFP_KERNEL | __GFP_NOWARN);
	ret = kfd_wait_user(p, &wait, args);
	kfree(wait.waiters);
	kvfree(wait.data);
	if (ret)
		args->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
	else if (args->wait_result == KFD_IOC_WAIT_RESULT_FAIL)
		ret = -EIO;
	return ret;
}

/* ---- checkpoint and restore ---- */

unsigned int kfd_events_count(struct kfd_process *p)
{
	return kfd_events_save(p, NULL, 0);
}

static void kfd_event_save(const struct kfd_event *ev, struct kfd_event_priv *priv)
{
	priv->object_type = 1;
	priv->event_id = ev->id;
	priv->auto_reset = ev->auto_reset;
	priv->type = ev->type;
	priv->signaled = ev->signaled;
	if (ev->type == KFD_IOC_EVENT_MEMORY)
		priv->memory = ev->memory;
	else if (ev->type == KFD_IOC_EVENT_HW_EXCEPTION)
		priv->hw = ev->hw;
}

unsigned int kfd_events_save(struct kfd_process *p, struct kfd_event_priv *priv, unsigned int max)
{
	struct kfd_event *ev;
	unsigned int n = 0;
	int id;

	spin_lock(&p->event_lock);
	idr_for_each_entry (&p->events, ev, id) {
		if (n < max) {
			kfd_event_save(ev, &priv[n]);
			priv[n].user_handle = n ? 0 : p->signal_handle;
		}
		n++;
	}
	spin_unlock(&p->event_lock);
	return n;
}

/* Under kfd_process.lock. */
int kfd_event_restore(struct kfd_process *p, const struct kfd_event_priv *priv)
{
	struct kfd_event *ev;
	int ret;

	BUILD_BUG_ON(sizeof(*priv) != 64);
	if (priv->event_id > INT_MAX)
		return -EINVAL;
	if (priv->user_handle) {
		ret = kfd_events_set_page(p, priv->user_handle);
		if (ret)
			return ret;
	}
	if (!kfd_has_slot(priv->type) && priv->type != KFD_IOC_EVENT_MEMORY && priv->type != KFD_IOC_EVENT_HW_EXCEPTION)
		return -EINVAL;
	ev = kfd_event_new(priv->type, priv->auto_reset);
	if (!ev)
		return -ENOMEM;
	ev->signaled = priv->signaled;
	if (priv->type == KFD_IOC_EVENT_MEMORY)
		ev->memory = priv->memory;
	else if (priv->type == KFD_IOC_EVENT_HW_EXCEPTION)
		ev->hw = priv->hw;
	ret = kfd_event_add(p, ev, &priv->event_id);
	return ret < 0 ? ret : 0;
}
