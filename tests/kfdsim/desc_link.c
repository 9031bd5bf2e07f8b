// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links between the nodes of a description, where it gives none: each GPU is
 * attached to one CPU by PCIe; GPUs of one hive reach each other by XGMI, all
 * others by PCIe across their CPUs (p2p_links), if the target's whole VRAM is
 * visible. A CPU lists a GPU under the same condition.
 */
#include <linux/kernel.h>

#include "desc.h"

enum { TYPE_HT = 1, TYPE_PCIE = 2, TYPE_XGMI = 11 };
enum { FLAG_ENABLED = 1, FLAG_NON_COHERENT = 2 };

#define PCIE_WEIGHT	     20
#define CPU_CPU_WEIGHT	     32
#define XGMI_HOP_WEIGHT	     15
#define SAME_PACKAGE_WEIGHT  13
#define SAME_PACKAGE_MBPS    819200
#define PCIE_MIN_MBPS	     312 /* one lane of the first generation */

static bool is_large_bar(const struct desc_draft *draft)
{
	return draft->node.bar_size >= draft->node.vram_size;
}

static unsigned int nr_cpus(const struct desc_drafts *drafts)
{
	unsigned int i, n = 0;

	for (i = 0; i < drafts->nr; i++)
		n += !drafts->draft[i].node.is_gpu;
	return n;
}

static const struct desc_draft *nth_cpu(const struct desc_drafts *drafts, u64 n)
{
	unsigned int i;

	for (i = 0; i < drafts->nr; i++)
		if (!drafts->draft[i].node.is_gpu && !n--)
			return &drafts->draft[i];
	return NULL;
}

/* Every GPU's CPU: the one that the text names, or the GPUs are spread evenly. */
static int assign_cpus(struct desc_drafts *drafts)
{
	unsigned int i, cpus = nr_cpus(drafts), gpus = drafts->nr - cpus, k = 0;

	for (i = 0; i < drafts->nr; i++) {
		struct desc_draft *draft = &drafts->draft[i];

		if (!draft->node.is_gpu)
			continue;
		if (draft->extra.cpu == DESC_NOT_GIVEN)
			draft->extra.cpu = k * cpus / gpus;
		if (draft->extra.cpu >= cpus)
			return desc_error(drafts->file, draft->line, "cpu = %llu: there are %u CPU nodes",
					  draft->extra.cpu, cpus);
		k++;
	}
	return 0;
}

static const struct desc_draft *cpu_of(const struct desc_drafts *drafts, const struct desc_draft *gpu)
{
	return nth_cpu(drafts, gpu->extra.cpu);
}

static u32 engine_mask(u64 nr)
{
	return nr < 32 ? (1U << nr) - 1 : U32_MAX;
}

static struct sim_link *add_link(struct desc_draft *from, const struct desc_draft *to, bool p2p, u32 type, u32 weight)
{
	struct sim_link *link = desc_add_link(&from->node);

	if (!link)
		return NULL;
	link->p2p = p2p;
	link->type = type;
	link->node_from = from->node.id;
	link->node_to = to->node.id;
	link->weight = weight;
	return link;
}

static int add_cpu_to_cpu(struct desc_draft *from, const struct desc_draft *to)
{
	return add_link(from, to, false, TYPE_HT, CPU_CPU_WEIGHT) ? 0 : -ENOMEM;
}

/* Between a GPU and any CPU, in either direction. Through another CPU it is an indirect link, listed as p2p. */
static int add_cpu_and_gpu(const struct desc_drafts *drafts, struct desc_draft *from, const struct desc_draft *to)
{
	const struct desc_draft *gpu = from->node.is_gpu ? from : to, *cpu = from->node.is_gpu ? to : from;
	bool direct = cpu_of(drafts, gpu) == cpu;
	struct sim_link *link;

	if (gpu == to && !is_large_bar(gpu))
		return 0;
	link = add_link(from, to, !direct, TYPE_PCIE, PCIE_WEIGHT + (direct ? 0 : CPU_CPU_WEIGHT));
	if (!link)
		return -ENOMEM;
	link->flags = FLAG_ENABLED | (gpu == to ? FLAG_NON_COHERENT : 0);
	if (!direct)
		return 0;
	link->min_bandwidth = PCIE_MIN_MBPS;
	link->max_bandwidth = gpu->extra.pcie_bandwidth;
	link->recommended_sdma_engine_id_mask = engine_mask(gpu->node.prop[SIM_PROP_num_sdma_engines]);
	return 0;
}

static bool same_device(const struct sim_node *a, const struct sim_node *b)
{
	return a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus && a->pci_devfn == b->pci_devfn;
}

static int add_xgmi(struct desc_draft *from, const struct desc_draft *to)
{
	const u64 *prop = from->node.prop;
	bool inside = same_device(&from->node, &to->node);
	u32 weight = from->node.nr_partitions == 1 ? XGMI_HOP_WEIGHT :
		     inside			   ? SAME_PACKAGE_WEIGHT : 2 * SAME_PACKAGE_WEIGHT + XGMI_HOP_WEIGHT;
	u32 general = engine_mask(prop[SIM_PROP_num_sdma_engines]);
	u32 all = engine_mask(prop[SIM_PROP_num_sdma_engines] + prop[SIM_PROP_num_sdma_xgmi_engines]);
	struct sim_link *link = add_link(from, to, false, TYPE_XGMI, weight);

	if (!link)
		return -ENOMEM;
	link->flags = FLAG_ENABLED;
	link->recommended_sdma_engine_id_mask = all == general ? general : all & ~general;
	if (from->node.nr_partitions == 1)
		link->min_bandwidth = link->max_bandwidth = from->extra.xgmi_bandwidth;
	else if (inside)
		link->min_bandwidth = link->max_bandwidth = SAME_PACKAGE_MBPS;
	return 0;
}

static int add_pcie_peer(struct desc_draft *from, const struct desc_draft *to)
{
	bool same_cpu = from->extra.cpu == to->extra.cpu;
	struct sim_link *link;

	if (!from->extra.p2p || !to->extra.p2p || !is_large_bar(to))
		return 0;
	link = add_link(from, to, true, TYPE_PCIE, 2 * PCIE_WEIGHT + (same_cpu ? 0 : CPU_CPU_WEIGHT));
	if (!link)
		return -ENOMEM;
	link->flags = FLAG_ENABLED | FLAG_NON_COHERENT;
	if (same_cpu) {
		link->min_bandwidth = PCIE_MIN_MBPS;
		link->max_bandwidth = min(from->extra.pcie_bandwidth, to->extra.pcie_bandwidth);
	}
	return 0;
}

static int add_links_between(const struct desc_drafts *drafts, struct desc_draft *from, const struct desc_draft *to)
{
	u64 hive = from->node.prop[SIM_PROP_hive_id];

	if (!from->node.is_gpu && !to->node.is_gpu)
		return add_cpu_to_cpu(from, to);
	if (!from->node.is_gpu || !to->node.is_gpu)
		return add_cpu_and_gpu(drafts, from, to);
	if (hive && hive == to->node.prop[SIM_PROP_hive_id])
		return add_xgmi(from, to);
	return add_pcie_peer(from, to);
}

/* A node with links of its own in the text keeps exactly these. */
static int fill_node(struct desc_drafts *drafts, struct desc_draft *from)
{
	unsigned int i;
	int err = 0;

	if (from->nr_io_links_given || from->nr_p2p_links_given)
		return 0;
	for (i = 0; i < drafts->nr && !err; i++)
		if (&drafts->draft[i] != from)
			err = add_links_between(drafts, from, &drafts->draft[i]);
	return err;
}

static int check_node(const struct desc_drafts *drafts, struct desc_draft *draft)
{
	struct sim_node *node = &draft->node;
	unsigned int i, p2p = 0;

	if (node->nr_links > drafts->nr - 1)
		return desc_error(drafts->file, draft->line, "node %u has %u links, more than other nodes", node->id,
				  node->nr_links);
	for (i = 0; i < node->nr_links; i++) {
		p2p += node->links[i].p2p;
		if (node->links[i].node_to < drafts->nr && node->links[i].node_from == node->id &&
		    node->links[i].node_to != node->id)
			continue;
		return desc_error(drafts->file, draft->line, "node %u: link from node %u to node %u", node->id,
				  node->links[i].node_from, node->links[i].node_to);
	}
	node->prop[SIM_PROP_p2p_links_count] = p2p;
	node->prop[SIM_PROP_io_links_count] = node->nr_links - p2p;
	return 0;
}

/* sim.h promises io_links first. */
static int sort_links(struct sim_node *node)
{
	struct sim_link *sorted = kcalloc(node->nr_links, sizeof(*sorted), GFP_KERNEL);
	unsigned int i, n = 0;

	if (!sorted && node->nr_links)
		return -ENOMEM;
	for (i = 0; i < node->nr_links; i++)
		if (!node->links[i].p2p)
			sorted[n++] = node->links[i];
	for (i = 0; i < node->nr_links; i++)
		if (node->links[i].p2p)
			sorted[n++] = node->links[i];
	kfree(node->links);
	node->links = sorted;
	return 0;
}

int desc_fill_links(struct desc_drafts *drafts)
{
	unsigned int i;
	int err = assign_cpus(drafts);

	for (i = 0; i < drafts->nr && !err; i++) {
		err = fill_node(drafts, &drafts->draft[i]);
		if (!err)
			err = check_node(drafts, &drafts->draft[i]);
		if (!err)
			err = sort_links(&drafts->draft[i].node);
	}
	return err;
}
