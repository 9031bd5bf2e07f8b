// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on request. A person writes "POINT NTH ERRNO [TIMES]" to
 * /sys/kernel/debug/kfdsim/faults; from then on the NTH call that passes
 * POINT fails with -ERRNO, and so do the TIMES - 1 calls after it (0: all).
 * Writing "clear" forgets everything. Reading shows each armed point. The
 * file "gpus" next to it takes "GPU_ID hang|stuck|lost|ok".
 */
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "device.h"

#define MAX_LINE 128
#define MAX_POINTS 64

struct fault {
	struct list_head link;
	char point[48];
	int err;		/* positive */
	unsigned long nth;	/* first call that fails, counted from 1 */
	unsigned long times;	/* how many fail; 0 = all from then on */
	unsigned long calls, failed;
};

static LIST_HEAD(faults);
static unsigned int nr_faults;
static DEFINE_MUTEX(faults_lock);
static bool faults_armed; /* read without the lock: a call that races with arming may miss it */

static bool fault_hits(struct fault *fault)
{
	fault->calls++;
	if (fault->calls < fault->nth || (fault->times && fault->calls >= fault->nth + fault->times))
		return false;
	fault->failed++;
	return true;
}

int sim_fault_check(const char *point)
{
	struct fault *fault;
	int err = 0;

	if (!READ_ONCE(faults_armed))
		return 0;
	mutex_lock(&faults_lock);
	list_for_each_entry(fault, &faults, link)
		if (!strcmp(fault->point, point) && fault_hits(fault) && !err)
			err = -fault->err;
	mutex_unlock(&faults_lock);
	return err;
}

static void faults_clear(void)
{
	struct fault *fault, *next;

	mutex_lock(&faults_lock);
	list_for_each_entry_safe(fault, next, &faults, link) {
		list_del(&fault->link);
		kfree(fault);
	}
	nr_faults = 0;
	WRITE_ONCE(faults_armed, false);
	mutex_unlock(&faults_lock);
}

static const struct {
	const char *name;
	int err;
} errno_names[] = {
#define E(name) { #name, name }
	E(EPERM), E(ENOENT), E(ESRCH), E(EINTR), E(EIO), E(EBADF), E(EAGAIN), E(ENOMEM), E(EACCES), E(EFAULT),
	E(EBUSY), E(EEXIST), E(ENODEV), E(EINVAL), E(EMFILE), E(ENOTTY), E(ENOSPC), E(ETIME), E(ECANCELED),
	E(EOPNOTSUPP), E(EADDRINUSE),
#undef E
};

static int parse_errno(const char *s)
{
	unsigned int i, number;

	for (i = 0; i < ARRAY_SIZE(errno_names); i++)
		if (!strcmp(errno_names[i].name, s))
			return errno_names[i].err;
	if (kstrtouint(s, 0, &number) || !number || number > MAX_ERRNO)
		return -EINVAL;
	return number;
}

static int fault_add(struct fault *fault)
{
	int err = 0;

	mutex_lock(&faults_lock);
	if (nr_faults == MAX_POINTS) {
		err = -ENOSPC;
	} else {
		nr_faults++;
		list_add_tail(&fault->link, &faults);
		WRITE_ONCE(faults_armed, true);
	}
	mutex_unlock(&faults_lock);
	return err;
}

/* The whole line, without anything behind, or -EINVAL. */
static int fault_parse(const char *line, struct fault *fault)
{
	int third = 0, fourth = 0;
	char name[16];

	fault->times = 1;
	sscanf(line, "%47s %lu %15s%n %lu%n", fault->point, &fault->nth, name, &third, &fault->times, &fourth);
	if (!third || !fault->nth || line[max(third, fourth)])
		return -EINVAL;
	if (!sim_kfd_has_fault_point(fault->point) && !sim_drm_has_fault_point(fault->point))
		return -EINVAL;
	fault->err = parse_errno(name);
	return fault->err < 0 ? fault->err : 0;
}

static int fault_arm(const char *line)
{
	struct fault *fault = kzalloc(sizeof(*fault), GFP_KERNEL);
	int err;

	if (!fault)
		return -ENOMEM;
	err = fault_parse(line, fault);
	if (!err)
		err = fault_add(fault);
	if (err)
		kfree(fault);
	return err;
}

static ssize_t faults_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char line[MAX_LINE];
	int err = 0;

	if (!len || len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	strim(line);
	if (!strcmp(line, "clear"))
		faults_clear();
	else
		err = fault_arm(line);
	return err ? err : len;
}

static int faults_show(struct seq_file *m, void *unused)
{
	struct fault *fault;

	mutex_lock(&faults_lock);
	list_for_each_entry(fault, &faults, link)
		seq_printf(m, "%s nth %lu errno %d times %lu calls %lu failed %lu\n", fault->point, fault->nth,
			   fault->err, fault->times, fault->calls, fault->failed);
	mutex_unlock(&faults_lock);
	return 0;
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, NULL);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = faults_open,
	.read = seq_read,
	.write = faults_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---- GPUs that hang or are lost ---- */

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
	debugfs_create_file("faults", 0644, dir, NULL, &faults_fops);
	debugfs_create_file("gpus", 0644, dir, NULL, &gpus_fops);
}

void sim_fault_fini(void)
{
	faults_clear();
}
