// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP: pause a process, hand out its state, make another process that
 * state's owner, set it going. The private data is one run of records:
 * process, devices, BOs, then queues, events and SVM ranges.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd_criu.h"

/* ---- private data ---- */

/* What the caller made room for was counted: more would mean that something was created since. */
int kfd_priv_put(struct kfd_priv_cursor *cur, const void *data, size_t len)
{
	if (cur->at > cur->size || len > cur->size - cur->at)
		return -EINVAL;
	if (copy_to_user(cur->base + cur->at, data, len))
		return -EFAULT;
	cur->at += len;
	return 0;
}

int kfd_priv_peek(const struct kfd_priv_cursor *cur, void *data, size_t len)
{
	if (cur->at > cur->size || len > cur->size - cur->at)
		return -EINVAL;
	return copy_from_user(data, cur->base + cur->at, len) ? -EFAULT : 0;
}

int kfd_priv_get(struct kfd_priv_cursor *cur, void *data, size_t len)
{
	int ret = kfd_priv_peek(cur, data, len);

	if (!ret)
		cur->at += len;
	return ret;
}

/* ---- dma-buf fds ---- */

int kfd_fds_init(struct kfd_fds *fds, u32 max)
{
	fds->nr = 0;
	fds->files = kvcalloc(max, sizeof(*fds->files), GFP_KERNEL | __GFP_NOWARN);
	fds->fds = kvcalloc(max, sizeof(*fds->fds), GFP_KERNEL | __GFP_NOWARN);
	return fds->files && fds->fds ? 0 : -ENOMEM;
}

int kfd_fds_add(struct kfd_fds *fds, struct kfd_bo *bo, u32 *ret_fd)
{
	struct dma_buf *buf;
	int fd, ret;

	if (!(bo->flags & KFD_MEM_SHAREABLE)) {
		*ret_fd = KFD_INVALID_FD;
		fds->nr++;
		return 0;
	}
	ret = kfd_bo_export(bo, &buf);
	if (ret)
		return ret;
	fd = get_unused_fd_flags(0);
	if (fd < 0) {
		dma_buf_put(buf);
		return fd;
	}
	fds->files[fds->nr] = buf->file;
	fds->fds[fds->nr++] = fd;
	*ret_fd = fd;
	return 0;
}

void kfd_fds_done(struct kfd_fds *fds, bool commit)
{
	u32 i;

	for (i = 0; i < fds->nr; i++) {
		if (!fds->files[i])
			continue;
		if (commit) {
			fd_install(fds->fds[i], fds->files[i]);
		} else {
			put_unused_fd(fds->fds[i]);
			fput(fds->files[i]);
		}
	}
	kvfree(fds->files);
	kvfree(fds->fds);
}

/* ---- counting ---- */

bool kfd_bo_is_saved(const struct kfd_bo *bo)
{
	return !bo->va || bo->va > KFD_GPUVM_BASE;
}

static bool kfd_has_debugger_queues(void)
{
	return sim_machine.desc.kernel.release < 618;
}

u32 kfd_criu_queue_type(u32 type)
{
	return kfd_has_debugger_queues() && type >= KFD_QUEUE_SDMA_XGMI ? type + 1 : type;
}

u32 kfd_queue_type_of_criu(u32 saved)
{
	u32 type = saved;

	if (kfd_has_debugger_queues() && saved >= KFD_QUEUE_SDMA_XGMI)
		type = saved == KFD_QUEUE_SDMA_XGMI ? KFD_QUEUE_TYPE_COUNT : saved - 1;
	/* Engines can be named since KFD 1.17. */
	if (type == KFD_QUEUE_SDMA_BY_ENG_ID && sim_machine.desc.kernel.kfd_minor < 17)
		return KFD_QUEUE_TYPE_COUNT;
	return min_t(u32, type, KFD_QUEUE_TYPE_COUNT);
}

void kfd_queue_payload(const struct kfd_queue *q, u32 *mqd_size, u32 *ctl_stack_size)
{
	const struct sim_gpu *gpu = q->pdd->gpu;
	u32 xccs = sim_machine.desc.kernel.save_all_xccs ? kfd_num_xcc(gpu) : 1;

	*mqd_size = kfd_queue_mqd_size(gpu, q->props.type) * xccs;
	*ctl_stack_size = sim_machine.desc.kernel.lose_ctl_stacks ? 0 : kfd_ctl_stack_size(q) * xccs;
}

static u32 kfd_count_bos(struct kfd_process *p)
{
	struct kfd_bo *bo;
	unsigned int i;
	u32 n = 0;
	int nr;

	for (i = 0; i < p->nr_pdds; i++)
		idr_for_each_entry (&p->pdds[i]->bos, bo, nr)
			n += kfd_bo_is_saved(bo);
	return n;
}

static void kfd_count_objects(struct kfd_process *p, struct kfd_ioctl_criu_args *ret)
{
	u32 mqd_size, ctl_stack_size, events = kfd_events_count(p), ranges = kfd_svm_count(p);
	struct kfd_queue *q;

	ret->num_devices = p->nr_pdds;
	ret->num_bos = kfd_count_bos(p);
	ret->num_objects = events + ranges;
	ret->priv_data_size = sizeof(struct kfd_process_priv) + p->nr_pdds * sizeof(struct kfd_device_priv) +
			      (u64)ret->num_bos * sizeof(struct kfd_bo_priv) +
			      (u64)events * sizeof(struct kfd_event_priv) + (u64)ranges * kfd_svm_priv_size(p);
	list_for_each_entry (q, &p->queues, node) {
		kfd_queue_payload(q, &mqd_size, &ctl_stack_size);
		ret->num_objects++;
		ret->priv_data_size += sizeof(struct kfd_queue_priv) + mqd_size + ctl_stack_size;
	}
}

u64 kfd_criu_offset(const struct kfd_bo *bo)
{
	u32 actual = bo->pdd->gpu->node->gpu_id;

	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return KFD_MMAP_TYPE_DOORBELL | KFD_MMAP_GPU_ID(actual);
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return KFD_MMAP_TYPE_MMIO | KFD_MMAP_GPU_ID(actual);
	return bo->mmap_offset;
}

/* ---- PROCESS_INFO, UNPAUSE ---- */

#define KFD_PREEMPTION_MS 9000

/* The scheduler is asked to stop the queues, and given up on when it has not done so in that time. */
static int kfd_await_preemption(struct kfd_process *p)
{
	unsigned long end = jiffies + msecs_to_jiffies(KFD_PREEMPTION_MS);
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++) {
		struct kfd_pdd *pdd = p->pdds[i];

		while (pdd->nr_queues && READ_ONCE(pdd->gpu->state) == SIM_GPU_STUCK) {
			if (time_after(jiffies, end))
				return -ETIME;
			msleep(20);
		}
	}
	return 0;
}

static int kfd_criu_process_info(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	int ret;

	if (!p->nr_pdds)
		return -ENODEV;
	ret = kfd_await_preemption(p);
	if (ret)
		return ret;
	/* Up to 7.2 every call adds a reason to stand still, of which UNPAUSE takes away one. */
	if (!p->queues_paused || sim_machine.desc.kernel.process_info_counts)
		kfd_process_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_CHECKPOINT);
	p->queues_paused = true;
	args->pid = task_pid_nr_ns(p->lead_thread, task_active_pid_ns(p->lead_thread));
	kfd_count_objects(p, args);
	return 0;
}

static int kfd_criu_unpause(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	if (!p->queues_paused)
		return -EINVAL;
	kfd_process_restore_queues(p);
	p->queues_paused = false;
	return 0;
}

/* ---- CHECKPOINT ---- */

static int kfd_criu_checkpoint(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	struct kfd_ioctl_criu_args fresh = {};

	if (!p->nr_pdds)
		return -ENODEV;
	if (!p->queues_paused)
		return -EINVAL;
	kfd_count_objects(p, &fresh);
	if (fresh.num_devices != args->num_devices || fresh.num_bos != args->num_bos ||
	    fresh.num_objects != args->num_objects || fresh.priv_data_size != args->priv_data_size)
		return -EINVAL;
	return kfd_criu_save(p, args);
}

/* ---- RESUME ---- */

static bool kfd_has_vm(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (p->pdds[i]->vm)
			return true;
	return false;
}

/*
 * The kernel takes the pages of user memory now, once. What is missing then (a userfaultfd has yet to bring it) it
 * leaves unmapped for good and calls that a success.
 */
static void kfd_take_userptrs(struct kfd_process *p)
{
	struct kfd_bo *bo;
	unsigned int i;
	int nr;

	for (i = 0; i < p->nr_pdds; i++) {
		idr_for_each_entry(&p->pdds[i]->bos, bo, nr)
		{
			if (bo->bo->kind != SIM_BO_USERPTR)
				continue;
			if (!sim_user_pages_take(p->mm, bo->user_addr, bo->size, true))
				continue;
			WRITE_ONCE(bo->bo->user_missing, true);
			pr_err("kfdsim: process %d: user memory at %#llx is not there at RESUME: the GPU will not see "
			       "it\n",
			       p->lead_thread->pid, bo->user_addr);
		}
	}
}

static int kfd_resume_target(struct kfd_process *target)
{
	int ret;

	ret = kfd_svm_resume(target);
	if (ret)
		return ret;
	if (!kfd_has_vm(target)) {
		sim_would_crash("RESUME of a process that never had an address space");
		return -EINVAL;
	}
	if (!target->notifications_blocked)
		return -EINVAL;
	target->notifications_blocked = false;
	kfd_take_userptrs(target);
	kfd_process_restore_queues(target);
	return 0;
}

/* The number is one of the caller's pid namespace. */
static int kfd_criu_resume(struct kfd_ioctl_criu_args *args)
{
	struct pid *pid = find_get_pid(args->pid);
	struct kfd_process *target;
	int ret;

	if (!pid)
		return -ESRCH;
	target = kfd_process_by_pid(pid);
	put_pid(pid);
	if (!target)
		return -ESRCH;
	mutex_lock(&target->lock);
	ret = kfd_resume_target(target);
	mutex_unlock(&target->lock);
	kfd_process_put(target);
	return ret;
}

/* ---- the ioctl ---- */

static int kfd_criu_check_checkpoint(const struct kfd_ioctl_criu_args *args)
{
	return args->devices && args->bos && args->priv_data ? 0 : -EINVAL;
}

static int kfd_criu_check_restore(const struct kfd_ioctl_criu_args *args)
{
	bool without_bos = sim_machine.desc.kernel.criu_without_bos && !args->num_bos;

	if (!args->devices || !args->priv_data || !args->priv_data_size || !args->num_devices)
		return -EINVAL;
	return without_bos || (args->bos && args->num_bos) ? 0 : -EINVAL;
}

struct kfd_criu_row {
	int (*check)(const struct kfd_ioctl_criu_args *args); /* before the lock */
	int (*run)(struct kfd_process *p, struct kfd_ioctl_criu_args *args);
};

static const struct kfd_criu_row kfd_criu_rows[] = {
	[KFD_CRIU_OP_PROCESS_INFO] = { NULL, kfd_criu_process_info },
	[KFD_CRIU_OP_CHECKPOINT] = { kfd_criu_check_checkpoint, kfd_criu_checkpoint },
	[KFD_CRIU_OP_UNPAUSE] = { NULL, kfd_criu_unpause },
	[KFD_CRIU_OP_RESTORE] = { kfd_criu_check_restore, kfd_criu_restore },
};

int kfd_ioctl_criu(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_criu_args *args = data;
	const struct kfd_criu_row *row;
	int ret = 0;

	BUILD_BUG_ON(sizeof(struct kfd_queue_priv) != 120);
	BUILD_BUG_ON(sizeof(struct kfd_bo_priv) != 272);
	BUILD_BUG_ON(sizeof(struct kfd_svm_priv) != 24);
	BUILD_BUG_ON(sizeof(struct kfd_mqd) > KFD_MQD_SIZE_SDMA);

	if (args->op == KFD_CRIU_OP_RESUME)
		return kfd_criu_resume(args);
	if (args->op >= ARRAY_SIZE(kfd_criu_rows))
		return -EINVAL;
	row = &kfd_criu_rows[args->op];
	if (row->check)
		ret = row->check(args);
	if (ret)
		return ret;
	mutex_lock(&p->lock);
	ret = row->run(p, args);
	mutex_unlock(&p->lock);
	return ret;
}
