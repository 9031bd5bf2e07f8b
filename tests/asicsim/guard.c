// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver writes behind its own buffers. The KFD's buffers in VRAM and GTT, such as MQDs with their control
 * stacks, get some pages more than the driver asks for, with a pattern in them; whoever changes it would have changed
 * the memory of others. Probes of the two functions leave the driver itself as it is.
 */
#include <linux/kprobes.h>
#include <linux/version.h>

#include <drm/drm_drv.h>

#include "chip.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define ALLOC	     "amdgpu_amdkfd_alloc_kernel_mem"
#define FREE	     "amdgpu_amdkfd_free_kernel_mem"
#define ARG_MEM(r)   ((r)->cx)
#define ARG_CPU(r)   ((r)->r9)
#else
#define ALLOC	     "amdgpu_amdkfd_alloc_gtt_mem"
#define FREE	     "amdgpu_amdkfd_free_gtt_mem"
#define ARG_MEM(r)   ((r)->dx)
#define ARG_CPU(r)   ((r)->r8)
#endif

#define GUARD_BYTES 16384
#define PATTERN	    0x6755a4d5c0ffee11ULL

struct guard {
	struct list_head link;
	void *mem;
	u64 *at; /* behind what the driver asked for */
	bool told;
};

/* Of one call. */
struct call {
	void **mem, **cpu;
	size_t size;
};

static LIST_HEAD(guards);
static DEFINE_SPINLOCK(guards_lock);
static unsigned int nr_users;
static DEFINE_MUTEX(users_mutex);

static void check(struct guard *guard)
{
	unsigned int i, changed = 0;

	for (i = 0; i < GUARD_BYTES / sizeof(u64); i++)
		changed += guard->at[i] != PATTERN;
	WARN(changed && !guard->told, "asicsim: the driver has overwritten %zu bytes behind one of its buffers\n",
	     changed * sizeof(u64));
	guard->told |= changed;
}

void guards_check(void)
{
	struct guard *guard;
	unsigned long flags;

	spin_lock_irqsave(&guards_lock, flags);
	list_for_each_entry (guard, &guards, link)
		check(guard);
	spin_unlock_irqrestore(&guards_lock, flags);
}

static int alloc_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (void *)instance->data;

	*call = (struct call){ (void **)ARG_MEM(regs), (void **)ARG_CPU(regs), PAGE_ALIGN(regs->si) };
	regs->si = call->size + GUARD_BYTES;
	return 0;
}

static int alloc_ended(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	const struct call *call = (void *)instance->data;
	struct guard *guard = regs_return_value(regs) ? NULL : kmalloc(sizeof(*guard), GFP_ATOMIC);
	unsigned long flags;

	if (!guard)
		return 0;
	*guard = (struct guard){ .mem = *call->mem, .at = *call->cpu + call->size };
	memset64(guard->at, PATTERN, GUARD_BYTES / sizeof(u64));
	spin_lock_irqsave(&guards_lock, flags);
	list_add(&guard->link, &guards);
	spin_unlock_irqrestore(&guards_lock, flags);
	return 0;
}

static int free_begins(struct kprobe *probe, struct pt_regs *regs)
{
	struct amdgpu_device *adev = (void *)regs->di;
	void *mem = *(void **)regs->si;
	struct guard *guard, *next;
	unsigned long flags;

	spin_lock_irqsave(&guards_lock, flags);
	list_for_each_entry_safe (guard, next, &guards, link) {
		if (guard->mem != mem)
			continue;
		/* Of a device that goes, nothing is mapped any more. */
		if (!drm_dev_is_unplugged(adev_to_drm(adev)))
			check(guard);
		list_del(&guard->link);
		kfree(guard);
	}
	spin_unlock_irqrestore(&guards_lock, flags);
	return 0;
}

static struct kretprobe on_alloc = {
	.kp.symbol_name = ALLOC,
	.entry_handler = alloc_begins,
	.handler = alloc_ended,
	.data_size = sizeof(struct call),
};

static struct kprobe on_free = {
	.symbol_name = FREE,
	.pre_handler = free_begins,
};

void guards_start(void)
{
	mutex_lock(&users_mutex);
	if (!nr_users++)
		WARN(register_kprobe(&on_free) || register_kretprobe(&on_alloc), "asicsim: no guards\n");
	mutex_unlock(&users_mutex);
}

/* A structure of a probe is left with an address and flags that another registration does not take. */
static void stop(void)
{
	struct guard *guard, *next;

	unregister_kretprobe(&on_alloc);
	unregister_kprobe(&on_free);
	on_alloc.kp.addr = on_free.addr = NULL;
	on_alloc.kp.flags = on_free.flags = 0;
	list_for_each_entry_safe (guard, next, &guards, link)
		kfree(guard);
	INIT_LIST_HEAD(&guards);
}

void guards_stop(void)
{
	mutex_lock(&users_mutex);
	if (!--nr_users)
		stop();
	mutex_unlock(&users_mutex);
}
