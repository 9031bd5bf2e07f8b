// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/devices/virtual/kfd/kfd/topology: the description's nodes as the
 * kernel driver shows them. Each directory is one kobject that knows how to
 * print its files; values never change after load. Files of a GPU that the
 * reader's device cgroup hides answer -EPERM.
 */
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "sim.h"

#define MAX_SIBLING_BITS 1024

/* A directory of the topology. Those that only hold others have no @files. */
struct dir {
	struct kobject kobj;
	struct list_head link;
	const struct sim_node *node; /* NULL for the root */
	const void *data;	     /* bank, cache or link; else unused */
	ssize_t (*show)(const struct dir *dir, const char *file, char *buf);
};

static LIST_HEAD(dirs); /* in order of creation: parents before children */

static struct attribute attr_generation_id = { .name = "generation_id", .mode = 0444 };
static struct attribute attr_system_properties = { .name = "system_properties", .mode = 0444 };
static struct attribute attr_gpu_id = { .name = "gpu_id", .mode = 0444 };
static struct attribute attr_name = { .name = "name", .mode = 0444 };
static struct attribute attr_properties = { .name = "properties", .mode = 0444 };

static const struct attribute *const root_files[] = { &attr_generation_id, &attr_system_properties, NULL };
static const struct attribute *const node_files[] = { &attr_gpu_id, &attr_name, &attr_properties, NULL };
static const struct attribute *const leaf_files[] = { &attr_properties, NULL };

/* ---- what the files say ---- */

static ssize_t show_root(const struct dir *dir, const char *file, char *buf)
{
	const struct sim_desc *desc = &sim_machine.desc;

	/* The generation counts changes; the nodes came one by one. */
	if (!strcmp(file, "generation_id"))
		return sysfs_emit(buf, "%u\n", desc->nr_nodes);
	return sysfs_emit(buf, "platform_oem %llu\nplatform_id %llu\nplatform_rev %llu\n", desc->platform_oem,
			  desc->platform_id, desc->platform_rev);
}

static const char *const property_names[SIM_PROP_COUNT] = {
#define X(name) #name,
	SIM_PROPERTIES(X)
#undef X
};

static bool is_gpu_only(enum sim_property prop)
{
	return prop >= SIM_PROP_max_engine_clk_fcompute && prop <= SIM_PROP_num_xcc;
}

static ssize_t show_node(const struct dir *dir, const char *file, char *buf)
{
	const struct sim_node *node = dir->node;
	enum sim_property prop;
	int len = 0;

	if (!strcmp(file, "gpu_id"))
		return sysfs_emit(buf, "%u\n", node->gpu_id);
	if (!strcmp(file, "name"))
		return sysfs_emit(buf, "%s\n", node->name);
	for (prop = 0; prop < SIM_PROP_COUNT; prop++)
		if (node->is_gpu || !is_gpu_only(prop))
			len += sysfs_emit_at(buf, len, "%s %llu\n", property_names[prop], node->prop[prop]);
	return len;
}

static ssize_t show_bank(const struct dir *dir, const char *file, char *buf)
{
	const struct sim_mem_bank *bank = dir->data;

	return sysfs_emit(buf, "heap_type %u\nsize_in_bytes %llu\nflags %u\nwidth %u\nmem_clk_max %u\n",
			  bank->heap_type, bank->size_in_bytes, bank->flags, bank->width, bank->mem_clk_max);
}

static ssize_t show_cache(const struct dir *dir, const char *file, char *buf)
{
	const struct sim_cache *cache = dir->data;
	u32 bits = clamp_t(u32, round_up(cache->siblings, 8), 8, MAX_SIBLING_BITS), i;
	int len;

	len = sysfs_emit(buf, "processor_id_low %u\nlevel %u\nsize %u\ncache_line_size %u\ncache_lines_per_tag %u\n"
			 "association %u\nlatency %u\ntype %u\nsibling_map ",
			 cache->processor_id_low, cache->level, cache->size, cache->cache_line_size,
			 cache->cache_lines_per_tag, cache->association, cache->latency, cache->type);
	for (i = 0; i < bits; i++)
		len += sysfs_emit_at(buf, len, "%c%c", i < cache->siblings ? '1' : '0', i + 1 < bits ? ',' : '\n');
	return len;
}

static ssize_t show_link(const struct dir *dir, const char *file, char *buf)
{
	const struct sim_link *link = dir->data;

	return sysfs_emit(buf, "type %u\nversion_major %u\nversion_minor %u\nnode_from %u\nnode_to %u\nweight %u\n"
			  "min_latency %u\nmax_latency %u\nmin_bandwidth %u\nmax_bandwidth %u\n"
			  "recommended_transfer_size %u\nrecommended_sdma_engine_id_mask %u\nflags %u\n",
			  link->type, link->version_major, link->version_minor, link->node_from, link->node_to,
			  link->weight, link->min_latency, link->max_latency, link->min_bandwidth, link->max_bandwidth,
			  link->recommended_transfer_size, link->recommended_sdma_engine_id_mask, link->flags);
}

/* ---- directories ---- */

static bool is_hidden(const struct sim_node *node)
{
	struct sim_gpu *gpu = node && node->is_gpu ? sim_gpu_by_id(node->gpu_id) : NULL;

	return gpu && sim_gpu_is_hidden(gpu);
}

static ssize_t dir_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	const struct dir *dir = container_of(kobj, struct dir, kobj);

	/* Since 6.2 caches are added too late to get the GPU whose permission is asked for. */
	if (dir->show == show_cache && sim_machine.desc.kernel.release >= 602)
		return dir->show(dir, attr->name, buf);
	return is_hidden(dir->node) ? -EPERM : dir->show(dir, attr->name, buf);
}

static void dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct dir, kobj));
}

static const struct sysfs_ops dir_ops = { .show = dir_show };

static const struct kobj_type dir_type = {
	.sysfs_ops = &dir_ops,
	.release = dir_release,
};

static void dir_remove(struct dir *dir)
{
	list_del(&dir->link);
	kobject_del(&dir->kobj);
	kobject_put(&dir->kobj);
}

static struct dir *dir_add(struct kobject *parent, const char *name, const struct attribute *const *files,
			   const struct dir *like)
{
	struct dir *dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	int err;

	if (!dir)
		return ERR_PTR(-ENOMEM);
	if (like) {
		dir->node = like->node;
		dir->data = like->data;
		dir->show = like->show;
	}
	err = kobject_init_and_add(&dir->kobj, &dir_type, parent, "%s", name);
	if (err) {
		kobject_put(&dir->kobj);
		return ERR_PTR(err);
	}
	list_add_tail(&dir->link, &dirs);
	err = files ? sysfs_create_files(&dir->kobj, (const struct attribute **)files) : 0;
	if (err) {
		dir_remove(dir);
		return ERR_PTR(err);
	}
	return dir;
}

static int leaf_add(struct dir *parent, unsigned int index, const struct dir *like)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", index);
	return PTR_ERR_OR_ZERO(dir_add(&parent->kobj, name, leaf_files, like));
}

static int add_banks(struct dir *node_dir)
{
	struct dir *parent = dir_add(&node_dir->kobj, "mem_banks", NULL, NULL);
	const struct sim_node *node = node_dir->node;
	unsigned int i;
	int err = PTR_ERR_OR_ZERO(parent);

	for (i = 0; i < node->nr_mem_banks && !err; i++)
		err = leaf_add(parent, i,
			       &(struct dir){ .node = node, .data = &node->mem_banks[i], .show = show_bank });
	return err;
}

static int add_caches(struct dir *node_dir)
{
	struct dir *parent = dir_add(&node_dir->kobj, "caches", NULL, NULL);
	const struct sim_node *node = node_dir->node;
	unsigned int i;
	int err = PTR_ERR_OR_ZERO(parent);

	for (i = 0; i < node->nr_caches && !err; i++)
		err = leaf_add(parent, i, &(struct dir){ .node = node, .data = &node->caches[i], .show = show_cache });
	return err;
}

static int add_links(struct dir *node_dir, const char *name, bool p2p)
{
	struct dir *parent = dir_add(&node_dir->kobj, name, NULL, NULL);
	const struct sim_node *node = node_dir->node;
	unsigned int i, n = 0;
	int err = PTR_ERR_OR_ZERO(parent);

	for (i = 0; i < node->nr_links && !err; i++)
		if (node->links[i].p2p == p2p)
			err = leaf_add(parent, n++,
				       &(struct dir){ .node = node, .data = &node->links[i], .show = show_link });
	return err;
}

static int add_node(struct dir *nodes, const struct sim_node *node)
{
	struct dir *dir;
	char name[16];
	int err;

	snprintf(name, sizeof(name), "%u", node->id);
	dir = dir_add(&nodes->kobj, name, node_files, &(struct dir){ .node = node, .show = show_node });
	if (IS_ERR(dir))
		return PTR_ERR(dir);
	err = add_banks(dir);
	if (!err)
		err = add_caches(dir);
	if (!err)
		err = add_links(dir, "io_links", false);
	if (!err)
		err = add_links(dir, "p2p_links", true);
	return err;
}

int sim_topology_init(void)
{
	struct device *kfd = sim_kfd_device();
	struct dir *root, *nodes;
	unsigned int i;
	int err;

	if (!kfd)
		return -ENODEV;
	root = dir_add(&kfd->kobj, "topology", root_files, &(struct dir){ .show = show_root });
	if (IS_ERR(root))
		return PTR_ERR(root);
	nodes = dir_add(&root->kobj, "nodes", NULL, NULL);
	err = PTR_ERR_OR_ZERO(nodes);
	for (i = 0; i < sim_machine.desc.nr_nodes && !err; i++)
		err = add_node(nodes, &sim_machine.desc.nodes[i]);
	if (err) {
		pr_err("kfdsim: building the topology in sysfs failed: error %d\n", err);
		sim_topology_fini();
	}
	return err;
}

void sim_topology_fini(void)
{
	struct dir *dir, *previous;

	list_for_each_entry_safe_reverse(dir, previous, &dirs, link)
		dir_remove(dir);
}
