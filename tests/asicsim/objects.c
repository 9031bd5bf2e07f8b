// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/asicsim/{objects,clients}: what is alive, counted in the driver's own lists. Memory is what
 * TTM has given out beyond what it had when something was last written to "objects".
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <drm/drm_file.h>
#include <drm/ttm/ttm_resource.h>

#include "chip.h"
#include "compat.h"
#include "kfd_priv.h"
#include "kfd_svm.h"

static DEFINE_MUTEX(objects_lock);
static struct dentry *objects_dir;
static unsigned int nr_chips;

struct counts {
	unsigned int drm_file, handle, ctx, bo_list;
	unsigned int kfd_process, kfd_bo, queue, event, svm_range, evicted;
	s64 vram_kib, gtt_kib;
};

static unsigned int count_idr(struct idr *idr)
{
	unsigned int n = 0;
	void *entry;
	int id;

	idr_for_each_entry (idr, entry, id)
		n++;
	return n;
}

/* ---- render nodes ---- */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
static unsigned int count_xarray(struct xarray *xa)
{
	unsigned int n = 0;
	unsigned long index;
	void *entry;

	xa_for_each (xa, index, entry)
		n++;
	return n;
}

static void count_jobs(struct counts *c, struct amdgpu_fpriv *priv)
{
	c->bo_list += count_xarray(&priv->bo_list_handles);
	c->ctx += count_xarray(&priv->ctx_mgr.ctx_handles);
}
#else
static void count_jobs(struct counts *c, struct amdgpu_fpriv *priv)
{
	mutex_lock(&priv->bo_list_lock);
	c->bo_list += count_idr(&priv->bo_list_handles);
	mutex_unlock(&priv->bo_list_lock);
	mutex_lock(&priv->ctx_mgr.lock);
	c->ctx += count_idr(&priv->ctx_mgr.ctx_handles);
	mutex_unlock(&priv->ctx_mgr.lock);
}
#endif

static void count_file(struct counts *c, struct drm_file *file)
{
	struct amdgpu_fpriv *priv = file->driver_priv;

	c->drm_file++;
	spin_lock(&file->table_lock);
	c->handle += count_idr(&file->object_idr);
	spin_unlock(&file->table_lock);
	if (!priv)
		return;
	count_jobs(c, priv);
}

static void show_file(struct seq_file *m, struct drm_file *file)
{
	struct counts c = {};
	pid_t pid;

	count_file(&c, file);
	rcu_read_lock();
	pid = pid_nr(rcu_dereference(file->pid));
	rcu_read_unlock();
	seq_printf(m, "%s%d pid %d handle %u ctx %u bo_list %u\n", drm_is_primary_client(file) ? "card" : "renderD",
		   file->minor->index, pid, c.handle, c.ctx, c.bo_list);
}

/* Partitions of a GPU have DRM devices of their own, whose files are in the list of the first. */
static void each_file(struct chip *chip, struct counts *c, struct seq_file *m)
{
	struct drm_device *ddev = adev_to_drm(chip->adev);
	struct drm_file *file;

	mutex_lock(&ddev->filelist_mutex);
	list_for_each_entry (file, &ddev->filelist, lhead) {
		if (m)
			show_file(m, file);
		else
			count_file(c, file);
	}
	mutex_unlock(&ddev->filelist_mutex);
}

/* ---- KFD processes ---- */

static unsigned int count_ranges(struct kfd_process *p)
{
	unsigned int n = 0;
#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
	mutex_lock(&p->svms.lock);
	n = list_count_nodes(&p->svms.list);
	mutex_unlock(&p->svms.lock);
#endif
	return n;
}

static void count_process(struct counts *c, struct kfd_process *p)
{
	c->kfd_process++;
	mutex_lock(&p->mutex);
	for (unsigned int i = 0; i < p->n_pdds; i++) {
		c->kfd_bo += count_idr(&p->pdds[i]->alloc_idr);
		c->evicted += p->pdds[i]->qpd.evicted;
	}
	c->queue += list_count_nodes(&p->pqm.queues);
	c->event += count_idr(&p->event_idr);
	mutex_unlock(&p->mutex);
	c->svm_range += count_ranges(p);
}

static void show_process(struct seq_file *m, struct kfd_process *p)
{
	struct counts c = {};

	count_process(&c, p);
	seq_printf(m, "kfd pid %d kfd_bo %u queue %u event %u svm_range %u evicted %u\n", task_pid_nr(p->lead_thread),
		   c.kfd_bo, c.queue, c.event, c.svm_range, c.evicted);
}

static void each_process(struct counts *c, struct seq_file *m)
{
	struct kfd_process *p;
	unsigned int bucket;

	mutex_lock(&kfd_processes_mutex);
	hash_for_each (kfd_processes_table, bucket, p, kfd_processes) {
		if (m)
			show_process(m, p);
		else
			count_process(c, p);
	}
	mutex_unlock(&kfd_processes_mutex);
}

/* ---- memory ---- */

static s64 used_kib(struct ttm_resource_manager *manager)
{
	return ttm_resource_manager_usage(manager) >> 10;
}

static void count_memory(struct chip *chip, void *data)
{
	struct amdgpu_device *adev = chip->adev;
	struct counts *c = data;

	s64 vram = used_kib(&adev->mman.vram_mgr.manager) - chip->vram_kib_before;
	s64 moved = min(vram, 0); /* what the driver has for itself is in GTT since, as after a reset */

	c->vram_kib += vram - moved;
	c->gtt_kib += used_kib(&adev->mman.gtt_mgr.manager) - chip->gtt_kib_before + moved;
}

static void note_memory(struct chip *chip, void *data)
{
	chip->vram_kib_before = used_kib(&chip->adev->mman.vram_mgr.manager);
	chip->gtt_kib_before = used_kib(&chip->adev->mman.gtt_mgr.manager);
}

/* ---- files ---- */

static void count_files(struct chip *chip, void *c)
{
	each_file(chip, c, NULL);
}

static int objects_show(struct seq_file *m, void *unused)
{
	struct counts c = {};

	chips_each(count_files, &c);
	chips_each(count_memory, &c);
	each_process(&c, NULL);
	seq_printf(m, "drm_file %u\nhandle %u\nctx %u\nbo_list %u\n", c.drm_file, c.handle, c.ctx, c.bo_list);
	seq_printf(m, "kfd_process %u\nkfd_bo %u\nqueue %u\nevent %u\nsvm_range %u\n", c.kfd_process, c.kfd_bo, c.queue,
		   c.event, c.svm_range);
	seq_printf(m, "vram_kib %lld\ngtt_kib %lld\n", c.vram_kib, c.gtt_kib);
	return 0;
}

static int objects_open(struct inode *inode, struct file *file)
{
	return single_open(file, objects_show, NULL);
}

static ssize_t objects_write(struct file *file, const char __user *text, size_t len, loff_t *pos)
{
	chips_each(note_memory, NULL);
	return len;
}

static const struct file_operations objects_fops = {
	.owner = THIS_MODULE,
	.open = objects_open,
	.read = seq_read,
	.write = objects_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void show_files(struct chip *chip, void *m)
{
	each_file(chip, NULL, m);
}

static int clients_show(struct seq_file *m, void *unused)
{
	chips_each(show_files, m);
	each_process(NULL, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clients);

void objects_start(void)
{
	mutex_lock(&objects_lock);
	if (!nr_chips++) {
		objects_dir = debugfs_create_dir("asicsim", NULL);
		debugfs_create_file("objects", 0644, objects_dir, NULL, &objects_fops);
		debugfs_create_file("clients", 0444, objects_dir, NULL, &clients_fops);
		control_files(objects_dir);
	}
	mutex_unlock(&objects_lock);
}

void objects_stop(void)
{
	mutex_lock(&objects_lock);
	if (!--nr_chips) {
		debugfs_remove(objects_dir);
	}
	mutex_unlock(&objects_lock);
}
