// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPUs that hang or are lost, on request: /sys/kernel/debug/kfdsim/gpus takes "GPU_ID hang|stuck|lost|ok".
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "device.h"

#define MAX_LINE 128

static const char *const state_names[] = {
	[SIM_GPU_OK] = "ok",
	[SIM_GPU_HANGS] = "hang",
	[SIM_GPU_STUCK] = "stuck",
	[SIM_GPU_LOST] = "lost",
};

int sim_engine_check(const struct sim_gpu *gpu)
{
	switch (READ_ONCE(gpu->state)) {
	case SIM_GPU_HANGS:
	case SIM_GPU_STUCK:
		return -EAGAIN;
	case SIM_GPU_LOST:
		return -EFAULT;
	default:
		return 0;
	}
}

static ssize_t gpus_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char line[MAX_LINE], name[16], end;
	struct sim_gpu *gpu;
	int gpu_id, state;

	if (!len || len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	if (sscanf(line, "%i %15s %c", &gpu_id, name, &end) != 2)
		return -EINVAL;
	state = match_string(state_names, ARRAY_SIZE(state_names), name);
	if (state < 0)
		return -EINVAL;
	gpu = sim_gpu_by_id(gpu_id);
	if (!gpu)
		return -ENODEV;
	pr_info("kfdsim: gpu %#x: %s from now on\n", gpu_id, name);
	WRITE_ONCE(gpu->state, state);
	return len;
}

static int gpus_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	for (i = 0; i < sim_machine.nr_gpus; i++)
		seq_printf(m, "%#x %s\n", sim_machine.gpus[i]->node->gpu_id,
			   state_names[READ_ONCE(sim_machine.gpus[i]->state)]);
	return 0;
}

static int gpus_open(struct inode *inode, struct file *file)
{
	return single_open(file, gpus_show, NULL);
}

static const struct file_operations gpus_fops = {
	.owner = THIS_MODULE,
	.open = gpus_open,
	.read = seq_read,
	.write = gpus_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void sim_fault_init(struct dentry *dir)
{
	debugfs_create_file("gpus", 0644, dir, NULL, &gpus_fops);
}
