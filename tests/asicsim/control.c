// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/asicsim/gpus: one line "GPU_ID STATE" for each GPU. Writing such a line with the state "hang" stops
 * all engines of the GPU, until "ok" is written or the driver, whose jobs' time is up, resets it; with "rings", only the
 * kernel's rings stop, until that reset; with "held", so do they, and the reset lasts until "ok" is written; with "slow",
 * its engines take their time until "ok" is written. "GPU_ID rate MBPS" has the kernel's ring of each engine copy no more
 * than so many MB/s (0: as fast as it can); fills do not count.
 * /sys/kernel/debug/asicsim/engines: "GPU_ID ENGINE BYTES", what each of these rings has copied.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "chip.h"
#include "kfd_priv.h"

struct order {
	u32 gpu_id;
	bool hang, slow, rate, rings, held, found;
	u32 mbps;
};

static u32 gpu_id(struct chip *chip)
{
	struct kfd_dev *kfd = chip->adev->kfd.dev;

	return kfd && kfd->num_nodes ? kfd->nodes[0]->id : 0;
}

static void show(struct chip *chip, void *m)
{
	seq_printf(m, "%#x %s\n", gpu_id(chip), READ_ONCE(chip->halted) ? "hang" : READ_ONCE(chip->slow) ? "slow" : "ok");
}

static int gpus_show(struct seq_file *m, void *unused)
{
	chips_each(show, m);
	return 0;
}

static int gpus_open(struct inode *inode, struct file *file)
{
	return single_open(file, gpus_show, NULL);
}

static void carry_out(struct chip *chip, void *data)
{
	struct order *order = data;

	if (gpu_id(chip) != order->gpu_id)
		return;
	order->found = true;
	if (order->rate) {
		WRITE_ONCE(chip->mbps, order->mbps);
		return;
	}
	for (unsigned int i = 0; order->rings && i < ARRAY_SIZE(chip->rings); i++)
		WRITE_ONCE(chip->rings[i].hung, true);
	WRITE_ONCE(chip->reset_held, order->held);
	WRITE_ONCE(chip->halted, order->hang);
	WRITE_ONCE(chip->slow, order->slow);
}

static ssize_t gpus_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct order order = {};
	char text[32], state[8];

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%x %7s %u", &order.gpu_id, state, &order.mbps) < 2)
		return -EINVAL;
	order.hang = !strcmp(state, "hang");
	order.slow = !strcmp(state, "slow");
	order.rate = !strcmp(state, "rate");
	order.held = !strcmp(state, "held");
	order.rings = order.held || !strcmp(state, "rings");
	if (!order.hang && !order.slow && !order.rate && !order.rings && strcmp(state, "ok"))
		return -EINVAL;
	chips_each(carry_out, &order);
	return order.found ? len : -ENODEV;
}

static const struct file_operations gpus_fops = {
	.owner = THIS_MODULE,
	.open = gpus_open,
	.read = seq_read,
	.write = gpus_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void show_engines(struct chip *chip, void *m)
{
	for (unsigned int i = 0; i < AMDGPU_MAX_SDMA_INSTANCES; i++)
		if (READ_ONCE(chip->rings[i].copied))
			seq_printf(m, "%#x %u %llu\n", gpu_id(chip), i, READ_ONCE(chip->rings[i].copied));
}

static int engines_show(struct seq_file *m, void *unused)
{
	chips_each(show_engines, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(engines);

void control_files(struct dentry *dir)
{
	debugfs_create_file("engines", 0444, dir, NULL, &engines_fops);
	debugfs_create_file("gpus", 0644, dir, NULL, &gpus_fops);
}
