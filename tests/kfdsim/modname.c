// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/module/amdgpu/initstate: ROCm's tools look there before they open
 * anything. It also keeps the real amdgpu from being loaded meanwhile, as the
 * kernel refuses a module whose name is in /sys/module already.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "device.h"

static struct kobject *amdgpu;

static struct attribute initstate = { .name = "initstate", .mode = 0444 };

static ssize_t amdgpu_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	return sysfs_emit(buf, "live\n");
}

static void amdgpu_release(struct kobject *kobj)
{
	kfree(kobj);
}

static const struct sysfs_ops amdgpu_ops = { .show = amdgpu_show };

static const struct kobj_type amdgpu_type = {
	.sysfs_ops = &amdgpu_ops,
	.release = amdgpu_release,
};

int sim_modname_init(void)
{
	int err;

	amdgpu = kzalloc(sizeof(*amdgpu), GFP_KERNEL);
	if (!amdgpu)
		return -ENOMEM;
	amdgpu->kset = THIS_MODULE->mkobj.kobj.kset;
	err = kobject_init_and_add(amdgpu, &amdgpu_type, NULL, "amdgpu");
	if (!err)
		err = sysfs_create_file(amdgpu, &initstate);
	if (err) {
		pr_err("kfdsim: /sys/module/amdgpu cannot be made (error %d): is the real amdgpu loaded? Unload it\n",
		       err);
		sim_modname_fini();
	}
	return err;
}

void sim_modname_fini(void)
{
	kobject_put(amdgpu);
	amdgpu = NULL;
}
