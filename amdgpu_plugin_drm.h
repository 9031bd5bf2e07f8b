/* SPDX-License-Identifier: GPL-2.0-only */
/* AMD render nodes: recognise and open them. */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <stdbool.h>
#include <stdint.h>

/* 1 when an open DRM file is driven by amdgpu, 0 when by another; asks for its name. -errno without a message. */
int drm_is_amd(int fd);

/* The same for the node of a minor. */
int drm_minor_is_amd(uint32_t minor);

/*
 * Opens the AMD render node of a minor. The file is new, so it shares no GEM handles
 * with another. Returns an fd that the caller owns, or -errno without a message
 * (-EMEDIUMTYPE when the node is there and is not that of an AMD GPU).
 */
int drm_open_minor(uint32_t minor);
/* With other flags than O_RDWR, for a task that has it open with these. */
int drm_open_minor_as(uint32_t minor, int flags);

/*
 * Waits until the GPU has cleared the address space of a file that was just opened. Linux 7.2 does not: it lets RESTORE
 * write there, and what is cleared later is no longer mapped (amdgpu_vm_make_compute() of 7.2.12). The GPU writes page
 * tables of a file one after the other, so a mapping of our own, which is taken back, is written after the clearing.
 * Before Linux 6.16 the kernel waits, and nothing is done. 0 or -errno without a message; -ETIME after 20 s.
 */
int drm_wait_until_clear(int fd);

/*
 * How many GEM objects an open file of an AMD render node holds, whoever opened it; the KFD's own buffers are not among
 * them. Changes nothing. Before Linux 6.18 only the first 4096 handles are looked at. 0 or -errno without a message.
 */
int drm_count_objects(int fd, uint32_t *ret);

/* How many contexts; a complete proof, since a file can have 4095. 0 or -errno without a message. */
int drm_count_contexts(int fd, uint32_t *ret);

/* What else an open file of an AMD render node holds. */
struct drm_holdings {
	uint32_t nr_contexts, nr_syncobjs;
	uint64_t memory_kib; /* of the system, that its address space maps, whoever allocated it */
	bool has_computed;   /* jobs were submitted */
};

/*
 * Asks for it and changes nothing; syncobjs are counted up to handle 4096, and memory is what the
 * kernel tells in fdinfo. 0 or -errno without a message.
 */
int drm_ask_holdings(int fd, struct drm_holdings *ret);

#endif
