/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process' image says, counted, and values in words. */
#ifndef TOOL_SUMMARY_H
#define TOOL_SUMMARY_H

#include "host/host.h"
#include "tool/images.h"

enum bo_kind { BO_VRAM, BO_GTT, BO_USERPTR, BO_DOORBELL, BO_MMIO, BO_OTHER, BO_NR_KINDS };

extern const char *const bo_kind_names[BO_NR_KINDS];

struct bo_sum {
	size_t nr;
	uint64_t bytes;
};

/* A GPU of a process. */
struct gpu_sum {
	const struct topology_node *node;
	struct bo_sum bos[BO_NR_KINDS];
	uint64_t content_bytes; /* of VRAM and GTT: what its pages file has */
	size_t nr_contents;	/* BOs whose contents are the process' own */
	unsigned int compute_queues, sdma_queues;
};

struct summary {
	struct gpu_sum *gpus; /* in the order of nodes */
	size_t nr_gpus;
	bool knows_objects; /* the kernel's state is laid out as known */
	unsigned int compute_queues, sdma_queues, events, svm_ranges;
	size_t shared_buffers; /* that other files or processes have, too */
};

/* Of a process' image; borrows from it. 0 or -ENOMEM, without a message. */
int summary_init(struct summary *summary, const struct kfd_image *kfd);
void summary_done(struct summary *summary);

/* "gfx90a"; "" where the image does not say. */
#define GFX_TEXT_MAX 32
const char *gfx_text(const struct topology_node *node, char text[GFX_TEXT_MAX]);
/* "0000:c1:00.0"; "" where there is no address. */
#define PCI_TEXT_MAX 32
const char *pci_text(const struct topology_node *node, char text[PCI_TEXT_MAX]);

/* Which criu has so many hooks: "4.2". NULL: none that is known. */
const char *criu_version_text(unsigned int hooks);

/* What a setting is, and who says so (the file beside images may be a stranger's): "0, from this shell's environment"
 */
#define SETTING_TEXT_MAX 4096
void setting_text(const struct settings *settings, enum setting id, char text[SETTING_TEXT_MAX]);

#endif
