// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/kfd/kfd/proc: one directory per KFD process, with what it uses
 * per GPU and its queues. GPU ids are the actual ones. A directory that could
 * not be made is missed by nobody but its readers.
 */
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "kfd.h"

static struct kobject *kfd_proc_root;

/* ---- the process' own files: pasid, vram_GPU, sdma_GPU ---- */

enum kfd_proc_file_kind {
	KFD_PROC_PASID,
	KFD_PROC_VRAM,
	KFD_PROC_SDMA,
};

struct kfd_proc_file {
	struct attribute attr;
	enum kfd_proc_file_kind kind;
	struct kfd_pdd *pdd;
	char name[16];
};

#define KFD_FILES_PER_PDD 2

static struct attribute kfd_pasid_attr = { .name = "pasid", .mode = 0444 };

static ssize_t kfd_process_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct kfd_process *p = container_of(kobj, struct kfd_process, kobj);
	struct kfd_proc_file *file;

	if (attr == &kfd_pasid_attr)
		return sysfs_emit(buf, "%u\n", p->pasid);
	file = container_of(attr, struct kfd_proc_file, attr);
	if (file->kind == KFD_PROC_VRAM)
		return sysfs_emit(buf, "%lld\n", (long long)atomic64_read(&file->pdd->vram_used));
	return sysfs_emit(buf, "%llu\n", (u64)atomic64_read(&file->pdd->sdma_us));
}

static const struct sysfs_ops kfd_process_sysfs_ops = { .show = kfd_process_show };

static const struct kobj_type kfd_process_type = {
	.release = kfd_process_kobj_release,
	.sysfs_ops = &kfd_process_sysfs_ops,
};

/* ---- directories below it ---- */

enum kfd_dir_kind {
	KFD_DIR_STATS,
	KFD_DIR_COUNTERS,
	KFD_DIR_QUEUE,
};

struct kfd_dir {
	struct kobject kobj;
	void *owner; /* a pdd or a queue */
};

static void kfd_dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct kfd_dir, kobj));
}

/* An eviction counts when it is over. */
static u64 kfd_evicted_ms(struct kfd_pdd *pdd)
{
	return div_u64(atomic64_read(&pdd->evicted_ns), NSEC_PER_MSEC);
}

static struct attribute kfd_evicted_attr = { .name = "evicted_ms", .mode = 0444 };
static struct attribute kfd_occupancy_attr = { .name = "cu_occupancy", .mode = 0444 };
static struct attribute kfd_faults_attr = { .name = "faults", .mode = 0444 };
static struct attribute kfd_page_in_attr = { .name = "page_in", .mode = 0444 };
static struct attribute kfd_page_out_attr = { .name = "page_out", .mode = 0444 };
static struct attribute kfd_q_gpuid_attr = { .name = "gpuid", .mode = 0444 };
static struct attribute kfd_q_size_attr = { .name = "size", .mode = 0444 };
static struct attribute kfd_q_type_attr = { .name = "type", .mode = 0444 };

/* Pages never move, and a kernel takes no CU for longer than its packet: zeros are exact. */
static ssize_t kfd_stats_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct kfd_pdd *pdd = container_of(kobj, struct kfd_dir, kobj)->owner;

	return sysfs_emit(buf, "%llu\n", attr == &kfd_evicted_attr ? kfd_evicted_ms(pdd) : 0);
}

/* Of faults that SVM resolves, and of pages that it moves: there are none. */
static ssize_t kfd_counters_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0\n");
}

static ssize_t kfd_queue_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct kfd_queue *q = container_of(kobj, struct kfd_dir, kobj)->owner;

	if (attr == &kfd_q_gpuid_attr)
		return sysfs_emit(buf, "%u", q->pdd->gpu->node->gpu_id);
	if (attr == &kfd_q_size_attr)
		return sysfs_emit(buf, "%llu", q->props.ring_size);
	return sysfs_emit(buf, "%u", q->props.type);
}

static struct attribute *kfd_stats_attrs[] = { &kfd_evicted_attr, &kfd_occupancy_attr, NULL };
static struct attribute *kfd_counters_attrs[] = { &kfd_faults_attr, &kfd_page_in_attr, &kfd_page_out_attr, NULL };
static struct attribute *kfd_queue_attrs[] = { &kfd_q_gpuid_attr, &kfd_q_size_attr, &kfd_q_type_attr, NULL };
ATTRIBUTE_GROUPS(kfd_stats);
ATTRIBUTE_GROUPS(kfd_counters);
ATTRIBUTE_GROUPS(kfd_queue);

static const struct sysfs_ops kfd_stats_ops = { .show = kfd_stats_show };
static const struct sysfs_ops kfd_counters_ops = { .show = kfd_counters_show };
static const struct sysfs_ops kfd_queue_ops = { .show = kfd_queue_show };

static const struct kobj_type kfd_dir_types[] = {
	[KFD_DIR_STATS] = { .release = kfd_dir_release,
			    .sysfs_ops = &kfd_stats_ops,
			    .default_groups = kfd_stats_groups },
	[KFD_DIR_COUNTERS] = { .release = kfd_dir_release,
			       .sysfs_ops = &kfd_counters_ops,
			       .default_groups = kfd_counters_groups },
	[KFD_DIR_QUEUE] = { .release = kfd_dir_release,
			    .sysfs_ops = &kfd_queue_ops,
			    .default_groups = kfd_queue_groups },
};

static struct kobject *kfd_dir_add(struct kobject *parent, enum kfd_dir_kind kind, void *owner, const char *format,
				   u32 number)
{
	struct kfd_dir *dir = kzalloc(sizeof(*dir), GFP_KERNEL);

	if (!dir)
		return NULL;
	dir->owner = owner;
	if (!kobject_init_and_add(&dir->kobj, &kfd_dir_types[kind], parent, format, number))
		return &dir->kobj;
	pr_warn("kfdsim: sysfs directory %s%u of a process cannot be made\n", kobject_name(parent), number);
	kobject_put(&dir->kobj);
	return NULL;
}

/* Waits for readers; afterwards the owner may go. */
static void kfd_dir_remove(struct kobject *dir)
{
	if (!dir)
		return;
	kobject_del(dir);
	kobject_put(dir);
}

/* ---- from outside ---- */

static void kfd_procfs_add_pdd(struct kfd_pdd *pdd)
{
	static const char *const prefix[KFD_FILES_PER_PDD] = { "vram", "sdma" };
	static const enum kfd_proc_file_kind kind[KFD_FILES_PER_PDD] = { KFD_PROC_VRAM, KFD_PROC_SDMA };
	struct kobject *parent = &pdd->process->kobj;
	u32 gpu_id = pdd->gpu->node->gpu_id;
	unsigned int i;

	pdd->stats = kfd_dir_add(parent, KFD_DIR_STATS, pdd, "stats_%u", gpu_id);
	pdd->counters = kfd_dir_add(parent, KFD_DIR_COUNTERS, pdd, "counters_%u", gpu_id);
	pdd->files = kcalloc(KFD_FILES_PER_PDD, sizeof(*pdd->files), GFP_KERNEL);
	for (i = 0; pdd->files && i < KFD_FILES_PER_PDD; i++) {
		struct kfd_proc_file *file = &pdd->files[i];

		snprintf(file->name, sizeof(file->name), "%s_%u", prefix[i], gpu_id);
		sysfs_attr_init(&file->attr);
		file->attr.name = file->name;
		file->attr.mode = 0444;
		file->kind = kind[i];
		file->pdd = pdd;
		if (sysfs_create_file(parent, &file->attr))
			pr_warn("kfdsim: sysfs file %s of process %s cannot be made\n", file->name,
				kobject_name(parent));
	}
}

void kfd_procfs_init_process(struct kfd_process *p)
{
	kobject_init(&p->kobj, &kfd_process_type);
}

/* The program that this pid ran before exec has a directory of the same name until its exit work is done. */
static void kfd_procfs_await_predecessor(int pid)
{
	struct kernfs_node *old;
	char name[12];

	if (!kfd_proc_root)
		return;
	snprintf(name, sizeof(name), "%d", pid);
	old = kernfs_find_and_get(kfd_proc_root->sd, name);
	if (!old)
		return;
	kernfs_put(old);
	kfd_process_flush();
}

void kfd_procfs_add_process(struct kfd_process *p)
{
	int pid = p->lead_thread->pid, ret = -ENOENT;
	unsigned int i;

	if (p->primary) {
		if (p->primary->in_sysfs)
			ret = kobject_add(&p->kobj, &p->primary->kobj, "context_%u", p->context_id);
	} else {
		kfd_procfs_await_predecessor(pid);
		if (kfd_proc_root)
			ret = kobject_add(&p->kobj, kfd_proc_root, "%d", pid);
	}
	if (ret) {
		pr_warn("kfdsim: sysfs directory of process %d cannot be made\n", pid);
		return;
	}
	p->in_sysfs = true;
	if (sysfs_create_file(&p->kobj, &kfd_pasid_attr))
		pr_warn("kfdsim: sysfs file pasid of process %d cannot be made\n", pid);
	p->queues_dir = kobject_create_and_add("queues", &p->kobj);
	for (i = 0; i < p->nr_pdds; i++)
		kfd_procfs_add_pdd(p->pdds[i]);
}

/* Also when it was never added. */
void kfd_procfs_remove_process(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++) {
		kfd_dir_remove(p->pdds[i]->stats);
		kfd_dir_remove(p->pdds[i]->counters);
	}
	kobject_put(p->queues_dir);
	if (p->in_sysfs)
		kobject_del(&p->kobj);
	p->in_sysfs = false;
	for (i = 0; i < p->nr_pdds; i++)
		kfree(p->pdds[i]->files);
}

void kfd_procfs_add_queue(struct kfd_queue *q)
{
	if (q->process->queues_dir)
		q->dir = kfd_dir_add(q->process->queues_dir, KFD_DIR_QUEUE, q, "%u", q->id);
}

void kfd_procfs_remove_queue(struct kfd_queue *q)
{
	kfd_dir_remove(q->dir);
	q->dir = NULL;
}

int kfd_procfs_init(struct device *kfd)
{
	kfd_proc_root = kobject_create_and_add("proc", &kfd->kobj);
	return kfd_proc_root ? 0 : -ENOMEM;
}

void kfd_procfs_fini(void)
{
	kobject_put(kfd_proc_root);
	kfd_proc_root = NULL;
}
