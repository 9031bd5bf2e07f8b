// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMI events: file descriptors from which a process reads one line per event
 * of a GPU, of the kinds that it asked for by writing a mask. Reported are page
 * faults and the eviction and return of queues; the rest does not happen here.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kfifo.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd.h"

#define KFD_SMI_FIFO_SIZE 8192
#define KFD_SMI_LINE	  96

struct kfd_smi_client {
	struct list_head node; /* kfd_gpu.smi_clients, under kfd_gpu.lock, as is the rest */
	struct kfd_gpu *kgpu;
	wait_queue_head_t wq;
	u64 mask;
	pid_t tgid;
	bool privileged;
	DECLARE_KFIFO(fifo, char, KFD_SMI_FIFO_SIZE);
};

void kfd_smi_init_gpu(struct kfd_gpu *kgpu)
{
	INIT_LIST_HEAD(&kgpu->smi_clients);
}

/* Of other processes than its own, a client hears when it has the privilege and asked for it. */
static bool kfd_smi_wants(const struct kfd_smi_client *client, const struct kfd_process *p, unsigned int event)
{
	bool all = client->privileged && client->mask & KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_ALL_PROCESS);

	return (client->mask & KFD_SMI_EVENT_MASK_FROM_INDEX(event)) &&
	       (!p || all || client->tgid == p->lead_thread->tgid);
}

void kfd_smi_event(struct sim_gpu *gpu, struct kfd_process *p, unsigned int event, const char *fmt, ...)
{
	struct kfd_gpu *kgpu = kfd_gpu(gpu);
	struct kfd_smi_client *client;
	char line[KFD_SMI_LINE];
	va_list args;
	int len;

	len = scnprintf(line, sizeof(line), "%x ", event);
	va_start(args, fmt);
	len += vscnprintf(line + len, sizeof(line) - len, fmt, args);
	va_end(args);

	mutex_lock(&kgpu->lock);
	list_for_each_entry (client, &kgpu->smi_clients, node) {
		/* Who does not read in time misses events, never half a line. */
		if (!kfd_smi_wants(client, p, event) || kfifo_avail(&client->fifo) < len)
			continue;
		kfifo_in(&client->fifo, line, len);
		wake_up_all(&client->wq);
	}
	mutex_unlock(&kgpu->lock);
}

static ssize_t kfd_smi_read(struct file *file, char __user *user, size_t size, loff_t *pos)
{
	struct kfd_smi_client *client = file->private_data;
	ssize_t len;
	char *buf;

	size = min_t(size_t, size, KFD_SMI_FIFO_SIZE);
	buf = kmalloc(size, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	mutex_lock(&client->kgpu->lock);
	len = kfifo_out(&client->fifo, buf, size);
	mutex_unlock(&client->kgpu->lock);
	if (!len)
		len = -EAGAIN;
	else if (copy_to_user(user, buf, len))
		len = -EFAULT;
	kfree(buf);
	return len;
}

static ssize_t kfd_smi_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	struct kfd_smi_client *client = file->private_data;
	u64 mask;

	if (size < sizeof(mask) || copy_from_user(&mask, user, sizeof(mask)))
		return -EFAULT;
	mutex_lock(&client->kgpu->lock);
	client->mask = mask;
	mutex_unlock(&client->kgpu->lock);
	return sizeof(mask);
}

static __poll_t kfd_smi_poll(struct file *file, struct poll_table_struct *table)
{
	struct kfd_smi_client *client = file->private_data;

	poll_wait(file, &client->wq, table);
	return kfifo_is_empty(&client->fifo) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static int kfd_smi_release(struct inode *inode, struct file *file)
{
	struct kfd_smi_client *client = file->private_data;

	mutex_lock(&client->kgpu->lock);
	list_del(&client->node);
	mutex_unlock(&client->kgpu->lock);
	kfree(client);
	return 0;
}

static const struct file_operations kfd_smi_fops = {
	.owner = THIS_MODULE,
	.read = kfd_smi_read,
	.write = kfd_smi_write,
	.poll = kfd_smi_poll,
	.release = kfd_smi_release,
};

int kfd_ioctl_smi_events(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_smi_events_args *args = data;
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, args->gpuid);
	struct kfd_smi_client *client;
	int fd;

	if (!pdd)
		return -EINVAL;
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return -ENOMEM;
	client->kgpu = kfd_gpu(pdd->gpu);
	client->tgid = current->tgid;
	client->privileged = capable(CAP_SYS_ADMIN);
	init_waitqueue_head(&client->wq);
	INIT_KFIFO(client->fifo);
	mutex_lock(&client->kgpu->lock);
	list_add_tail(&client->node, &client->kgpu->smi_clients);
	mutex_unlock(&client->kgpu->lock);

	fd = anon_inode_getfd("kfd_smi_ev", &kfd_smi_fops, client, O_RDWR);
	if (fd >= 0) {
		args->anon_fd = fd;
		return 0;
	}
	mutex_lock(&client->kgpu->lock);
	list_del(&client->node);
	mutex_unlock(&client->kgpu->lock);
	kfree(client);
	return fd;
}
