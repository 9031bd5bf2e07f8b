/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GEM objects, their mappings and syncobjs of one open file of a render node, one ioctl a function.
 *
 * All: 0 or -errno without a message. Those that change nothing may be called on a file of a dumped task; the others
 * are for files of the plugin and of the restoring task.
 */
#ifndef SHARE_GEM_H
#define SHARE_GEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "kernel/kernel.h"

/* ---- nothing changes ---- */

/* A handle as GEM_LIST_HANDLES tells it. */
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

/* The file offset at which it is mapped: its name on the device. -EPERM: of userptr memory, or not for the CPU. */
int gem_offset(int fd, uint32_t handle, uint64_t *ret);

/* Adds its GPU mappings to the list. */
int gem_mappings(int fd, uint32_t handle, struct render_objects *objects);

int gem_get_metadata(int fd, uint32_t handle, struct kfd_share *ret);

/* A dma-buf of it: an fd that the caller owns. It stays with the object as long as that has handles. */
int gem_export(int fd, uint32_t handle, bool read_only);

/* Adds the syncobjs; *ret_pending: the number of one whose fence has not signalled, or 0. */
int gem_syncobjs(int fd, struct render_objects *objects, uint32_t *ret_pending);

/* ---- for files of one's own ---- */

int gem_import(int fd, int dmabuf_fd, uint32_t *ret);
int gem_create(int fd, const struct gem_info *info, uint32_t *ret);
int gem_close(int fd, uint32_t handle);
int gem_map(int fd, const struct gem_mapping *mapping);
int gem_set_metadata(int fd, uint32_t handle, const struct kfd_share *share);
int gem_make_syncobj(int fd, const struct render_syncobj *syncobj, uint32_t *ret);
int gem_drop_syncobj(int fd, uint32_t handle);

#endif
