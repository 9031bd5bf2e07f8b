// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kfdsim/clients: what each open render node and each KFD
 * process owns, one line each. Only looks, at both front ends from above; no
 * one calls it but debugfs.
 */
#include <linux/debugfs.h>
#include <linux/idr.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <drm/drm_file.h>

#include "device.h"
#include "drm.h"
#include "kfd.h"

static unsigned int count_idr(struct idr *idr)
{
	unsigned int n = 0;
	void *entry;
	int id;

	idr_for_each_entry(idr, entry, id)
		n++;
	return n;
}

/* ---- render nodes ---- */

static unsigned int count_handles(struct drm_file *file)
{
	unsigned int n;

	spin_lock(&file->table_lock);
	n = count_idr(&file->object_idr);
	spin_unlock(&file->table_lock);
	return n;
}

static void show_file(struct seq_file *m, struct drm_file *file)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	pid_t pid;

	rcu_read_lock();
	pid = pid_nr(rcu_dereference(file->pid));
	rcu_read_unlock();
	mutex_lock(&f->lock);
	seq_printf(m, "%s%d pid %d handle %u ctx %u bo_list %u\n",
		   drm_is_primary_client(file) ? "card" : "renderD", file->minor->index, pid, count_handles(file),
		   count_idr(&f->ctxs), count_idr(&f->bo_lists));
	mutex_unlock(&f->lock);
}

static void show_gpu(struct seq_file *m, struct sim_gpu *gpu)
{
	struct drm_file *file;

	mutex_lock(&gpu->ddev.filelist_mutex);
	list_for_each_entry(file, &gpu->ddev.filelist, lhead)
		if (file->driver_priv)
			show_file(m, file);
	mutex_unlock(&gpu->ddev.filelist_mutex);
}

/* ---- KFD processes ---- */

static unsigned int count_events(struct kfd_process *p)
{
	unsigned int n;

	spin_lock(&p->event_lock);
	n = count_idr(&p->events);
	spin_unlock(&p->event_lock);
	return n;
}

static unsigned int count_ranges(struct kfd_process *p)
{
	struct list_head *pos;
	unsigned int n = 0;

	spin_lock(&p->svm_lock);
	list_for_each(pos, &p->svm_ranges)
		n++;
	spin_unlock(&p->svm_lock);
	return n;
}

static void show_process(struct seq_file *m, struct kfd_process *p)
{
	unsigned int i, bos = 0, queues = 0;

	mutex_lock(&p->lock);
	for (i = 0; i < p->nr_pdds; i++) {
		bos += count_idr(&p->pdds[i]->bos);
		queues += p->pdds[i]->nr_queues;
	}
	seq_printf(m, "kfd pid %d kfd_bo %u queue %u event %u svm_range %u evicted %d\n", task_pid_nr(p->lead_thread),
		   bos, queues, count_events(p), count_ranges(p), atomic_read(&p->evicted));
	mutex_unlock(&p->lock);
}

static int clients_show(struct seq_file *m, void *unused)
{
	struct kfd_process *p;
	unsigned int i;

	for (i = 0; i < sim_machine.nr_gpus; i++)
		show_gpu(m, sim_machine.gpus[i]);
	mutex_lock(&kfd_processes_lock);
	list_for_each_entry(p, &kfd_processes, node)
		show_process(m, p);
	mutex_unlock(&kfd_processes_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clients);

void sim_clients_init(struct dentry *dir)
{
	debugfs_create_file("clients", 0444, dir, NULL, &clients_fops);
}
