// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine: reads the description, creates one GPU per GPU node with its
 * DRM device, then brings up /dev/kfd and the topology; takes all of it down
 * again when the module goes. Also the counters of live objects. It knows the
 * front ends by their init and fini functions only.
 */
#include <linux/debugfs.h>
#include <linux/device_cgroup.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>

#include "compat.h"
#include "device.h"

#define DESC_MAX_BYTES (1 << 20)

struct sim_machine sim_machine;

static char *gpus;
module_param(gpus, charp, 0444);
MODULE_PARM_DESC(gpus, "path of the description of the simulated nodes");

static struct dentry *debug_dir;
static unsigned int nr_platform_devices;

/* ---- counters ---- */

static atomic_long_t objects[SIM_OBJ_COUNT];

static const char *const object_names[SIM_OBJ_COUNT] = {
	[SIM_OBJ_BO] = "bo",
	[SIM_OBJ_PAGE] = "page",
	[SIM_OBJ_VM] = "vm",
	[SIM_OBJ_MAPPING] = "mapping",
	[SIM_OBJ_DRM_FILE] = "drm_file",
	[SIM_OBJ_CTX] = "ctx",
	[SIM_OBJ_BO_LIST] = "bo_list",
	[SIM_OBJ_JOB] = "job",
	[SIM_OBJ_KFD_PROCESS] = "kfd_process",
	[SIM_OBJ_KFD_BO] = "kfd_bo",
	[SIM_OBJ_QUEUE] = "queue",
	[SIM_OBJ_EVENT] = "event",
	[SIM_OBJ_SVM_RANGE] = "svm_range",
};

void sim_object_add(enum sim_object kind, long n)
{
	atomic_long_add(n, &objects[kind]);
}

static int objects_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	for (i = 0; i < SIM_OBJ_COUNT; i++)
		seq_printf(m, "%s %ld\n", object_names[i], atomic_long_read(&objects[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

/* Nothing can be using the module any more, so whatever still counts was leaked. */
static void objects_report_leaks(void)
{
	unsigned int i;

	for (i = 0; i < SIM_OBJ_COUNT; i++) {
		long n = atomic_long_read(&objects[i]);

		if (n)
			pr_warn("kfdsim: leak: %ld objects of kind \"%s\" at unload\n", n, object_names[i]);
	}
}

/* ---- GPUs ---- */

struct sim_gpu *sim_gpu_by_id(u32 actual_gpu_id)
{
	unsigned int i;

	for (i = 0; i < sim_machine.nr_gpus; i++)
		if (sim_machine.gpus[i]->node->gpu_id == actual_gpu_id)
			return sim_machine.gpus[i];
	return NULL;
}

bool sim_gpu_is_hidden(const struct sim_gpu *gpu)
{
	return devcgroup_check_permission(DEVCG_DEV_CHAR, DRM_MAJOR, gpu->ddev.render->index,
					  DEVCG_ACC_READ | DEVCG_ACC_WRITE) != 0;
}

/*
 * The first partition is below the PCI device, each other one below a platform device, as with
 * the real driver. Ends with a reference that parent_put() drops.
 */
static struct device *parent_get(const struct sim_node *node)
{
	struct platform_device *pdev;
	struct device *dev;
	char name[32];

	if (node->partition == 0) {
		dev = sim_pci_device(node);
		return dev ? get_device(dev) : ERR_PTR(-ENODEV);
	}
	snprintf(name, sizeof(name), "amdgpu_xcp_%u", nr_platform_devices);
	pdev = platform_device_register_simple(name, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev))
		return ERR_CAST(pdev);
	nr_platform_devices++;
	dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(48));
	return &pdev->dev;
}

static void parent_put(const struct sim_node *node, struct device *dev)
{
	if (node->partition == 0)
		put_device(dev);
	else
		platform_device_unregister(to_platform_device(dev));
}

static bool minors_match(const struct sim_gpu *gpu)
{
	const struct sim_node *node = gpu->node;
	u32 render = node->prop[SIM_PROP_drm_render_minor];

	if (gpu->ddev.primary->index == node->card_minor && gpu->ddev.render->index == render)
		return true;
	pr_err("kfdsim: node %u: wanted card%u and renderD%u, the DRM core gave card%d and renderD%d\n", node->id,
	       node->card_minor, render, gpu->ddev.primary->index, gpu->ddev.render->index);
	return false;
}

static int gpu_register(struct sim_gpu *gpu)
{
	int err = sim_drm_init_gpu(gpu);

	if (err)
		return err;
	err = drm_dev_register(&gpu->ddev, 0);
	if (err)
		sim_drm_fini_gpu(gpu);
	return err;
}

/*
 * The parent has no driver that would free its device resources, so the DRM device lives in a
 * resource group of its own; gpu_destroy() releases that.
 */
static int gpu_create(struct sim_node *node, unsigned int index)
{
	struct device *dev = parent_get(node);
	struct sim_gpu *gpu;
	int err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	if (!devres_open_group(dev, node, GFP_KERNEL)) {
		err = -ENOMEM;
		goto err_parent;
	}
	gpu = devm_drm_dev_alloc(dev, sim_drm_driver_init(), struct sim_gpu, ddev);
	if (IS_ERR(gpu)) {
		err = PTR_ERR(gpu);
		goto err_group;
	}
	gpu->ddev.driver_features &= ~DRIVER_MODESET;
	gpu->node = node;
	gpu->index = index;
	gpu->dev = dev;
	err = minors_match(gpu) ? gpu_register(gpu) : -EBUSY;
	if (err)
		goto err_group;
	sim_machine.gpus[index] = gpu;
	return 0;

err_group:
	devres_release_group(dev, node);
err_parent:
	parent_put(node, dev);
	pr_err("kfdsim: node %u: creating the GPU failed: error %d\n", node->id, err);
	return err;
}

static void gpu_destroy(struct sim_gpu *gpu)
{
	struct sim_node *node = gpu->node;
	struct device *dev = gpu->dev;

	sim_machine.gpus[gpu->index] = NULL;
	drm_dev_unplug(&gpu->ddev);
	sim_drm_fini_gpu(gpu);
	devres_release_group(dev, node);
	parent_put(node, dev);
}

static void gpus_destroy(void)
{
	unsigned int i = SIM_MAX_GPUS;

	sim_machine.nr_gpus = 0;
	while (i--)
		if (sim_machine.gpus[i])
			gpu_destroy(sim_machine.gpus[i]);
}

struct gpu_slot {
	struct sim_node *node;
	unsigned int index;
};

static int by_render_minor(const void *a, const void *b)
{
	u64 x = ((const struct gpu_slot *)a)->node->prop[SIM_PROP_drm_render_minor];
	u64 y = ((const struct gpu_slot *)b)->node->prop[SIM_PROP_drm_render_minor];

	return x < y ? -1 : x > y;
}

static unsigned int collect_gpus(struct gpu_slot *slots)
{
	unsigned int i, n = 0;

	for (i = 0; i < sim_machine.desc.nr_nodes; i++) {
		struct sim_node *node = &sim_machine.desc.nodes[i];

		if (!node->is_gpu)
			continue;
		slots[n].node = node;
		slots[n].index = n;
		n++;
	}
	return n;
}

static int gpus_create(void)
{
	struct gpu_slot *slots = kcalloc(SIM_MAX_GPUS, sizeof(*slots), GFP_KERNEL);
	unsigned int i, n;
	int err;

	if (!slots)
		return -ENOMEM;
	n = collect_gpus(slots);
	sort(slots, n, sizeof(*slots), by_render_minor, NULL);

	err = sim_minors_begin(&sim_machine.desc);
	for (i = 0; i < n && !err; i++) {
		struct sim_node *node = slots[i].node;

		err = sim_minors_open(node->card_minor, node->prop[SIM_PROP_drm_render_minor]);
		if (!err)
			err = gpu_create(node, slots[i].index);
	}
	sim_minors_done();
	kfree(slots);
	if (err)
		gpus_destroy();
	else
		sim_machine.nr_gpus = n;
	return err;
}

/* ---- the module ---- */

/* Not kernel_read_file(): security modules want to know what kind of trusted file it reads, and this is none. */
static char *read_text(const char *path)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t pos = 0, size;
	ssize_t got;
	char *text;

	if (IS_ERR(file))
		return ERR_CAST(file);
	size = i_size_read(file_inode(file));
	text = size < DESC_MAX_BYTES ? kvzalloc(size + 1, GFP_KERNEL) : ERR_PTR(-EFBIG);
	if (!IS_ERR_OR_NULL(text)) {
		got = kernel_read(file, text, size, &pos);
		if (got != size) {
			kvfree(text);
			text = ERR_PTR(got < 0 ? got : -EIO);
		}
	}
	fput(file);
	return text ?: ERR_PTR(-ENOMEM);
}

static int description_load(const char *path)
{
	char *text;
	int err;

	if (!path || !*path) {
		pr_err("kfdsim: no description of the nodes: load the module with gpus=FILE\n");
		return -EINVAL;
	}
	text = read_text(path);
	if (IS_ERR(text)) {
		pr_err("kfdsim: %s: cannot be read: error %ld\n", path, PTR_ERR(text));
		return PTR_ERR(text);
	}
	err = sim_desc_parse(path, text, &sim_machine.desc);
	kvfree(text);
	return err;
}

/* What the SDMA engines have moved: "GPU_ID ENGINE BYTES" of those that did anything. */
static int engines_show(struct seq_file *m, void *unused)
{
	unsigned int i, engine;

	for (i = 0; i < sim_machine.nr_gpus; i++) {
		struct sim_gpu *gpu = sim_machine.gpus[i];

		for (engine = 0; engine < SIM_MAX_ENGINES; engine++) {
			s64 bytes = atomic64_read(&gpu->engines[engine].bytes);

			if (bytes)
				seq_printf(m, "%#x %u %lld\n", gpu->node->gpu_id, engine, bytes);
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(engines);

static atomic_t nr_crashes;

void sim_would_crash(const char *request)
{
	atomic_inc(&nr_crashes);
	pr_err("kfdsim: the kernel would crash here: process %d (%s): %s\n", current->pid, current->comm, request);
}

static int crashes_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", atomic_read(&nr_crashes));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(crashes);

/* Comes last and goes first: its files reach into everything. */
static void debug_init(void)
{
	debug_dir = debugfs_create_dir("kfdsim", NULL);
	debugfs_create_file("objects", 0444, debug_dir, NULL, &objects_fops);
	debugfs_create_file("engines", 0444, debug_dir, NULL, &engines_fops);
	debugfs_create_file("crashes", 0444, debug_dir, NULL, &crashes_fops);
	sim_clients_init(debug_dir);
	sim_fault_init(debug_dir);
}

static int __init sim_init(void)
{
	int err = description_load(gpus);

	if (err)
		return err;
	err = sim_modname_init();
	if (err)
		goto err_desc;
	err = sim_pci_init(&sim_machine.desc);
	if (err)
		goto err_modname;
	err = gpus_create();
	if (err)
		goto err_pci;
	err = sim_kfd_init();
	if (err)
		goto err_gpus;
	err = sim_topology_init();
	if (err)
		goto err_kfd;
	debug_init();
	pr_info("kfdsim: %u nodes, %u GPUs from %s\n", sim_machine.desc.nr_nodes, sim_machine.nr_gpus, gpus);
	return 0;

err_kfd:
	sim_kfd_fini();
err_gpus:
	gpus_destroy();
err_pci:
	sim_pci_fini();
err_modname:
	sim_modname_fini();
err_desc:
	sim_desc_free(&sim_machine.desc);
	return err;
}

static void __exit sim_exit(void)
{
	debugfs_remove(debug_dir);
	sim_topology_fini();
	sim_kfd_fini();
	gpus_destroy();
	sim_pci_fini();
	sim_modname_fini();
	sim_desc_free(&sim_machine.desc);
	objects_report_leaks();
}

module_init(sim_init);
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated AMD GPUs for tests");
MODULE_LICENSE("GPL");
SIM_IMPORT_NS(DMA_BUF);
