/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AMD's render nodes, and the GEM objects, mappings and syncobjs of one open file, one ioctl a function.
 *
 * All functions return 0 or -errno without a message, if nothing else is said. Those that change nothing may be called on
 * a file of a dumped task; the others are for files of the plugin and of the restoring task.
 */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "kernel/kernel.h"

/* ---- nodes ---- */

/* 1 when an open DRM file is driven by amdgpu, 0 when by another; asks for the driver's name. */
int drm_is_amd(int fd);

/* The same for whoever leaves alone what does not say its driver. */
static inline int drm_says_amd(int fd)
{
	return drm_is_amd(fd) > 0;
}

/* The same for the node of a minor. */
int drm_minor_is_amd(uint32_t minor);

/*
 * Opens the AMD render node of a minor. The file is new, so it shares no GEM handles with another. Returns an fd that the
 * caller owns; -EMEDIUMTYPE when the node is there and is not that of an AMD GPU.
 */
int drm_open_minor(uint32_t minor);
/* With other flags than O_RDWR, for a task that has it open with these. */
int drm_open_minor_as(uint32_t minor, int flags);

/*
 * Waits until the GPU has cleared the address space of a file that was just opened. Linux 7.2 does not: it lets RESTORE
 * write there, and what is cleared later is no longer mapped (amdgpu_vm_make_compute() of 7.2.12). The GPU writes page
 * tables of a file one after the other, so a mapping of our own, which is taken back, is written after the clearing.
 * Before Linux 6.16 the kernel waits, and nothing is done. -ETIME after 20 s.
 */
int drm_wait_until_clear(int fd);

/* ---- what a file holds: nothing changes ---- */

/*
 * How many handles an open file has, whoever opened it, where the kernel does not list them: numbers are tried up to a gap
 * of 4096. The KFD's own buffers are not among them.
 */
int drm_count_objects(int fd, uint32_t *ret);

/* How often the GPU of an open file has lost its VRAM to a reset since the driver was loaded. 0 or -errno, no message. */
int drm_count_losses(int fd, uint32_t *ret);

/*
 * The same of each of @files, by its place: *ret is the caller's. ROCm keeps a file open of each GPU that a process uses. And
 * whether it is the same still, after copies: those that begin after a reset would find what is in VRAM then. 0, or -errno
 * after fail().
 */
int losses_note(const struct task_files *files, uint32_t **ret);
int losses_check(const struct task_files *files, const uint32_t *losses);

/* How many contexts, the lowest numbers first, up to a gap of 512. */
int drm_count_contexts(int fd, uint32_t *ret);

/* What else an open file of an AMD render node holds. */
struct drm_holdings {
	uint32_t nr_contexts, nr_syncobjs;
	uint64_t memory_kib; /* of the system, that its address space maps, whoever allocated it; by fdinfo */
	bool has_computed;   /* jobs were submitted */
};
int drm_ask_holdings(int fd, struct drm_holdings *ret);

/* ---- objects: nothing changes ---- */

/* A handle in the kernel's list. */
struct gem_entry {
	uint32_t handle;
	bool is_import; /* of another device's memory */
};

/* All handles of a file, ascending; heap memory of the caller. -EINVAL on kernels before 6.18. */
int gem_list(int fd, struct gem_entry **ret, size_t *ret_nr);

/* What GEM_CREATE was asked for, or would have been: domains, all flags, alignment in bytes. */
struct gem_info {
	uint64_t size, domains, flags, alignment;
};
int gem_ask(int fd, uint32_t handle, struct gem_info *ret);

/* The file offset at which an object is mapped: its name on the device. -EPERM: of userptr memory, or not for the CPU. */
int gem_offset(int fd, uint32_t handle, uint64_t *ret);

/* Adds the GPU mappings of an object to the list. */
int gem_mappings(int fd, uint32_t handle, struct render_objects *objects);

int gem_get_metadata(int fd, uint32_t handle, struct kfd_share *ret);

/* A dma-buf of an object: an fd that the caller owns. The dma-buf stays with the object as long as that has handles. */
int gem_export(int fd, uint32_t handle, bool read_only);

/* Adds the syncobjs, likewise; *ret_pending: the number of one whose fence has not signalled, or 0. */
int gem_syncobjs(int fd, struct render_objects *objects, uint32_t *ret_pending);

/* ---- objects: for files of one's own ---- */

int gem_import(int fd, int dmabuf_fd, uint32_t *ret);
int gem_create(int fd, const struct gem_info *info, uint32_t *ret);
int gem_create_page(int fd, uint32_t *ret); /* the smallest object, in system memory */
int gem_close(int fd, uint32_t handle);
int gem_map(int fd, const struct gem_mapping *mapping);
int gem_unmap(int fd, const struct gem_mapping *mapping);
int gem_set_metadata(int fd, uint32_t handle, const struct kfd_share *share);
int gem_make_syncobj(int fd, const struct render_syncobj *syncobj, uint32_t *ret);
int gem_drop_syncobj(int fd, uint32_t handle);

#endif
