// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD processes: one object per mm, made when it first opens /dev/kfd, found
 * again by every further open, and further ones (secondary contexts) on request. It lives as long as the mm, an open
 * file or a user needs it. When the mm goes its queues are stopped; the rest follows with the last reference. Both
 * happen in work items, for neither an engine thread nor an mmu notifier may wait for engines.
 */
#include <linux/fs.h>
#include <linux/file.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "kfd.h"

#define KFD_MAX_CONTEXT_ID 0xfffe

DEFINE_MUTEX(kfd_processes_lock);
LIST_HEAD(kfd_processes);

static DEFINE_MUTEX(kfd_exit_lock); /* outside of kfd_processes_lock */
static struct workqueue_struct *kfd_wq;
static struct vfsmount *kfd_mount;
static atomic_t kfd_next_pasid = ATOMIC_INIT(0x8000);
static atomic_t kfd_nr_processes;
static DECLARE_WAIT_QUEUE_HEAD(kfd_processes_gone);

/* ---- a GPU in a process ---- */

static void kfd_pdd_free_bos(struct kfd_pdd *pdd)
{
	struct kfd_bo *bo;
	int nr;

	idr_for_each_entry (&pdd->bos, bo, nr)
		kfd_bo_destroy(bo);
	idr_destroy(&pdd->bos);
}

/* The BOs of all GPUs are gone: any of them may have been mapped into this one's address space. */
static void kfd_pdd_free(struct kfd_pdd *pdd)
{
	if (pdd->vm) {
		sim_vm_set_svm(pdd->vm, NULL, NULL);
		sim_vm_put(pdd->vm);
	}
	if (pdd->drm_file)
		fput(pdd->drm_file);
	kfd_doorbells_free(pdd);
	mutex_destroy(&pdd->doorbell_lock);
	kfree(pdd);
}

static struct kfd_pdd *kfd_pdd_new(struct kfd_process *p, struct sim_gpu *gpu)
{
	struct kfd_pdd *pdd = kzalloc(sizeof(*pdd), GFP_KERNEL);

	if (!pdd)
		return NULL;
	pdd->process = p;
	pdd->gpu = gpu;
	pdd->index = p->nr_pdds;
	pdd->user_gpu_id = gpu->node->gpu_id;
	idr_init(&pdd->bos);
	mutex_init(&pdd->doorbell_lock);
	init_waitqueue_head(&pdd->doorbell_wq);
	return pdd;
}

struct kfd_pdd *kfd_pdd_by_user_id(struct kfd_process *p, u32 user_gpu_id)
{
	unsigned int i;

	for (i = 0; user_gpu_id && i < p->nr_pdds; i++)
		if (READ_ONCE(p->pdds[i]->user_gpu_id) == user_gpu_id)
			return p->pdds[i];
	return NULL;
}

struct kfd_pdd *kfd_pdd_by_gpu(struct kfd_process *p, const struct sim_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (p->pdds[i]->gpu == gpu)
			return p->pdds[i];
	return NULL;
}

struct kfd_pdd *kfd_pdd_bound(struct kfd_pdd *pdd)
{
	return pdd->vm ? pdd : ERR_PTR(-ENODEV);
}

int kfd_pdd_acquire_vm(struct kfd_pdd *pdd, struct file *drm_file)
{
	struct sim_vm *vm = sim_vm_of_file(drm_file);
	bool taken;

	if (!vm)
		return -EINVAL;
	mutex_lock(&vm->lock);
	taken = vm->compute;
	vm->compute = true;
	mutex_unlock(&vm->lock);
	if (taken) {
		sim_vm_put(vm);
		return -EINVAL;
	}
	sim_vm_set_svm(vm, kfd_svm_lookup, pdd);
	pdd->vm = vm;
	pdd->drm_file = get_file(drm_file);
	return 0;
}

/* ---- the end of a process ---- */

static void kfd_process_free_work(struct work_struct *work)
{
	struct kfd_process *p = container_of(work, struct kfd_process, free_work);
	unsigned int i;

	kfd_svm_free(p);
	kfd_events_free(p);
	for (i = 0; i < p->nr_pdds; i++)
		kfd_pdd_free_bos(p->pdds[i]);
	for (i = 0; i < p->nr_pdds; i++)
		kfd_pdd_free(p->pdds[i]);
	if (p->inode)
		iput(p->inode);
	if (p->primary) {
		ida_free(&p->primary->context_ids, p->context_id);
		kfd_process_put(p->primary);
	}
	ida_destroy(&p->context_ids);
	put_task_struct(p->lead_thread);
	mmdrop(p->mm);
	mutex_destroy(&p->lock);
	/* The last users of the sysfs directory may still be leaving: they free it. */
	kobject_put(&p->kobj);
}

static void kfd_process_release(struct kref *ref)
{
	struct kfd_process *p = container_of(ref, struct kfd_process, ref);

	queue_work(kfd_wq, &p->free_work);
}

void kfd_process_put(struct kfd_process *p)
{
	kref_put(&p->ref, kfd_process_release);
}

/* Under kfd_exit_lock. Stops the engines. False when that was done before. */
static bool kfd_process_stop(struct kfd_process *p)
{
	struct kfd_queue *q, *next;
	bool done;

	mutex_lock(&kfd_processes_lock);
	done = list_empty(&p->node);
	list_del_init(&p->node);
	mutex_unlock(&kfd_processes_lock);
	if (done)
		return false;

	mutex_lock(&p->lock);
	p->gone = true;
	list_for_each_entry_safe (q, next, &p->queues, node)
		kfd_queue_destroy(q);
	mutex_unlock(&p->lock);
	kfd_procfs_remove_process(p);
	return true;
}

static struct kfd_process *kfd_first_context(const struct kfd_process *primary)
{
	struct kfd_process *p, *found = NULL;

	mutex_lock(&kfd_processes_lock);
	list_for_each_entry(p, &kfd_processes, node)
	{
		if (p->primary != primary)
			continue;
		kref_get(&p->ref);
		found = p;
		break;
	}
	mutex_unlock(&kfd_processes_lock);
	return found;
}

/* The mm is going, or the module: stops the engines of all contexts and lets go of the mm. Once only. */
static void kfd_process_exit(struct kfd_process *p)
{
	struct kfd_process *context;

	mutex_lock(&kfd_exit_lock);
	while ((context = kfd_first_context(p))) {
		kfd_process_stop(context);
		kfd_process_put(context);
	}
	/* Ends in kfd_notifier_free, which drops the reference of the mm. */
	if (kfd_process_stop(p) && !p->primary)
		mmu_notifier_put(&p->notifier);
	mutex_unlock(&kfd_exit_lock);
}

void kfd_context_close(struct kfd_process *p)
{
	kfd_process_exit(p);
	kfd_process_put(p);
}

static void kfd_process_exit_work(struct work_struct *work)
{
	struct kfd_process *p = container_of(work, struct kfd_process, exit_work);

	kfd_process_exit(p);
	kfd_process_put(p);
}

static void kfd_notifier_release(struct mmu_notifier *mn, struct mm_struct *mm)
{
	struct kfd_process *p = container_of(mn, struct kfd_process, notifier);

	kref_get(&p->ref);
	if (!queue_work(kfd_wq, &p->exit_work))
		kfd_process_put(p);
}

static void kfd_notifier_free(struct mmu_notifier *mn)
{
	kfd_process_put(container_of(mn, struct kfd_process, notifier));
}

static int kfd_notifier_invalidate(struct mmu_notifier *mn, const struct mmu_notifier_range *range)
{
	struct kfd_process *p = container_of(mn, struct kfd_process, notifier);

	if (range->event == MMU_NOTIFY_UNMAP && !READ_ONCE(p->notifications_blocked))
		kfd_svm_unmapped(p, range->start, range->end);
	return 0;
}

static const struct mmu_notifier_ops kfd_notifier_ops = {
	.release = kfd_notifier_release,
	.free_notifier = kfd_notifier_free,
	.invalidate_range_start = kfd_notifier_invalidate,
};

/* ---- its beginning ---- */

static int kfd_process_add_pdds(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < sim_machine.nr_gpus; i++) {
		struct sim_gpu *gpu = sim_machine.gpus[i];
		struct kfd_pdd *pdd;

		if (sim_gpu_is_hidden(gpu))
			continue;
		pdd = kfd_pdd_new(p, gpu);
		if (!pdd)
			return -ENOMEM;
		p->pdds[p->nr_pdds++] = pdd;
	}
	return 0;
}

void kfd_process_kobj_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct kfd_process, kobj));
	sim_object_add(SIM_OBJ_KFD_PROCESS, -1);
	if (atomic_dec_and_test(&kfd_nr_processes))
		wake_up(&kfd_processes_gone);
}

static struct kfd_process *kfd_process_new(void)
{
	struct kfd_process *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	kref_init(&p->ref);
	INIT_LIST_HEAD(&p->node);
	INIT_WORK(&p->exit_work, kfd_process_exit_work);
	INIT_WORK(&p->free_work, kfd_process_free_work);
	mutex_init(&p->lock);
	INIT_LIST_HEAD(&p->queues);
	ida_init(&p->context_ids);
	p->mm = current->mm;
	mmgrab(p->mm);
	p->lead_thread = current->group_leader;
	get_task_struct(p->lead_thread);
	p->pasid = atomic_inc_return(&kfd_next_pasid);
	kfd_events_init(p);
	kfd_svm_init(p);
	kfd_procfs_init_process(p);
	atomic_inc(&kfd_nr_processes);
	sim_object_add(SIM_OBJ_KFD_PROCESS, 1);
	return p;
}

/* Without an mm that keeps it. */
static struct kfd_process *kfd_process_make(void)
{
	struct kfd_process *p = kfd_process_new();
	struct inode *inode;
	int ret;

	if (!p)
		return ERR_PTR(-ENOMEM);
	ret = kfd_process_add_pdds(p);
	if (ret)
		goto err;
	inode = alloc_anon_inode(kfd_mount->mnt_sb);
	if (IS_ERR(inode)) {
		ret = PTR_ERR(inode);
		goto err;
	}
	p->inode = inode;
	return p;

err:
	kfd_process_put(p);
	return ERR_PTR(ret);
}

static struct kfd_process *kfd_process_create(void)
{
	struct kfd_process *p = kfd_process_make();
	int ret;

	if (IS_ERR(p))
		return p;
	p->notifier.ops = &kfd_notifier_ops;
	ret = mmu_notifier_register(&p->notifier, p->mm);
	if (ret) {
		kfd_process_put(p);
		return ERR_PTR(ret);
	}
	kref_get(&p->ref); /* the mm's; kfd_notifier_free drops it */
	list_add(&p->node, &kfd_processes);
	return p;
}

struct kfd_process *kfd_context_open(struct kfd_process *primary)
{
	struct kfd_process *p;
	int id;

	if (primary->primary)
		return ERR_PTR(-EINVAL);
	id = ida_alloc_max(&primary->context_ids, KFD_MAX_CONTEXT_ID, GFP_KERNEL);
	if (id < 0)
		return ERR_PTR(id);
	p = kfd_process_make();
	if (IS_ERR(p)) {
		ida_free(&primary->context_ids, id);
		return p;
	}
	p->context_id = id;
	p->primary = primary;
	kref_get(&primary->ref);
	mutex_lock(&kfd_processes_lock);
	list_add(&p->node, &kfd_processes);
	mutex_unlock(&kfd_processes_lock);
	kfd_procfs_add_process(p);
	return p;
}

static struct kfd_process *kfd_process_find(struct mm_struct *mm)
{
	struct kfd_process *p;

	list_for_each_entry(p, &kfd_processes, node) if (p->mm == mm && !p->primary) return p;
	return NULL;
}

struct kfd_process *kfd_process_open(void)
{
	struct kfd_process *p;
	bool created = false;

	if (!sim_machine.nr_gpus || !current->mm)
		return ERR_PTR(-EINVAL);
	mutex_lock(&kfd_processes_lock);
	p = kfd_process_find(current->mm);
	if (p) {
		kref_get(&p->ref);
	} else {
		p = kfd_process_create();
		created = !IS_ERR(p);
	}
	mutex_unlock(&kfd_processes_lock);
	if (created)
		kfd_procfs_add_process(p);
	return p;
}

struct kfd_process *kfd_process_by_pid(struct pid *pid)
{
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct kfd_process *p = NULL;
	struct mm_struct *mm;

	if (!task)
		return NULL;
	mm = get_task_mm(task);
	put_task_struct(task);
	if (!mm)
		return NULL;
	mutex_lock(&kfd_processes_lock);
	p = kfd_process_find(mm);
	if (p)
		kref_get(&p->ref);
	mutex_unlock(&kfd_processes_lock);
	/* Not under the lock: the last reference to an mm tears it down, and may end in kfd_notifier_release. */
	mmput(mm);
	return p;
}

/* ---- a file system for the inodes of processes ---- */

static int kfd_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, 0x4b464453) ? 0 : -ENOMEM;
}

void kfd_process_flush(void)
{
	flush_workqueue(kfd_wq);
}

static struct file_system_type kfd_fs_type = {
	/* no owner: the mount lasts as long as the module and must not keep it */
	.name = "kfdsim",
	.init_fs_context = kfd_fs_init,
	.kill_sb = kill_anon_super,
};

int kfd_process_init(void)
{
	int ret;

	kfd_wq = alloc_workqueue("kfdsim", WQ_UNBOUND, 0);
	if (!kfd_wq)
		return -ENOMEM;
	kfd_mount = kern_mount(&kfd_fs_type);
	if (!IS_ERR(kfd_mount))
		return 0;
	ret = PTR_ERR(kfd_mount);
	destroy_workqueue(kfd_wq);
	return ret;
}

static struct kfd_process *kfd_process_first(void)
{
	struct kfd_process *p;

	mutex_lock(&kfd_processes_lock);
	p = list_first_entry_or_null(&kfd_processes, struct kfd_process, node);
	if (p)
		kref_get(&p->ref);
	mutex_unlock(&kfd_processes_lock);
	return p;
}

void kfd_process_fini(void)
{
	struct kfd_process *p;

	while ((p = kfd_process_first())) {
		kfd_process_exit(p);
		kfd_process_put(p);
	}
	wait_event(kfd_processes_gone, !atomic_read(&kfd_nr_processes));
	mmu_notifier_synchronize();
	destroy_workqueue(kfd_wq);
	kern_unmount(kfd_mount);
}
