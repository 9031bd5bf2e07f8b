/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internals of the description: desc.c reads text into drafts, one per node,
 * with what the text says; desc_node.c and desc_link.c fill in what it leaves out.
 */
#ifndef KFDSIM_DESC_H
#define KFDSIM_DESC_H

#include <linux/bitmap.h>

#include "sim.h"

#define DESC_MAX_NODES (SIM_MAX_GPUS + 16)
#define DESC_NOT_GIVEN U64_MAX

/* What the text says of a node but sysfs does not show, and how much of the node is explicit. */
struct desc_extra {
	u64 memory;		/* CPU: bytes of system memory */
	u64 cpu;		/* GPU: index of the CPU node it is attached to */
	u64 mem_width, mem_clk_max;
	u64 l2_size, l3_size;	/* KiB */
	u64 p2p;		/* lists PCIe links to other GPUs */
	u64 ecc, apu;
	u64 pcie_bandwidth, xgmi_bandwidth; /* MB/s */
	u64 asic_revision;
};

struct desc_draft {
	struct sim_node node;
	struct desc_extra extra;
	DECLARE_BITMAP(given, SIM_PROP_COUNT);
	unsigned int line;	/* of its section */
	unsigned int nr_io_links_given, nr_p2p_links_given;
};

struct desc_drafts {
	const char *file;
	struct desc_draft *draft;
	unsigned int nr;
	struct sim_kernel kernel;
	u64 platform_oem, platform_id, platform_rev;
};

/* One line, "FILE:LINE: reason", in the kernel log; the value is -EINVAL. */
#define desc_error(file, line, fmt, ...) (pr_err("kfdsim: %s:%u: " fmt "\n", file, line, ##__VA_ARGS__), -EINVAL)

static inline bool desc_given(const struct desc_draft *draft, enum sim_property prop)
{
	return test_bit(prop, draft->given);
}

/* Sets a property that the text did not give. */
static inline void desc_default(struct desc_draft *draft, enum sim_property prop, u64 value)
{
	if (!desc_given(draft, prop))
		draft->node.prop[prop] = value;
}

/* The arrays of a node grow by one zeroed element; NULL without memory. */
struct sim_mem_bank *desc_add_mem_bank(struct sim_node *node);
struct sim_cache *desc_add_cache(struct sim_node *node);
struct sim_link *desc_add_link(struct sim_node *node);

/* desc_node.c: identity, geometry, memory banks, caches, gpu_id of all nodes; checks what must hold. */
int desc_fill_nodes(struct desc_drafts *drafts);
/* desc_link.c: io_links and p2p_links of all nodes. */
int desc_fill_links(struct desc_drafts *drafts);

#endif
