/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GEM objects of a render node: what libdrm and the ROCm runtime do with handles, by the bare ioctls.
 *
 * @file is the fd of a render node. Functions that return int give 0 or -errno and have reported the failure, unless
 * they say otherwise.
 */
#ifndef WORKLOADS_GEM_H
#define WORKLOADS_GEM_H

#include <stdbool.h>
#include <stdint.h>

struct kfd;
struct kfd_bo;

/* As in <libdrm/amdgpu_drm.h>. */
enum {
	GEM_DOMAIN_GTT = 2,
	GEM_DOMAIN_VRAM = 4,
	GEM_DOMAIN_DOORBELL = 0x40,

	GEM_NO_CPU_ACCESS = 1 << 1,
	GEM_ALWAYS_VALID = 1 << 6,
	GEM_ADDED = 0x209, /* by the kernel: cleared, wiped when freed, touched by the CPU */

	GEM_READ = 1 << 1,
	GEM_WRITE = 1 << 2,
	GEM_EXECUTE = 1 << 3,
};

int gem_create(int file, uint64_t size_bytes, uint64_t domains, uint64_t flags, uint32_t *ret_handle);
/* Memory of this process: whole pages at @p. */
int gem_userptr(int file, void *p, uint64_t size_bytes, uint32_t *ret_handle);
int gem_close(int file, uint32_t handle);
int gem_import(int file, int dmabuf, uint32_t *ret_handle);
/* The same of a BO of the KFD. */
int gem_import_bo(int file, struct kfd *kfd, const struct kfd_bo *bo, uint32_t *ret_handle);
/* @writable: the dma-buf is opened for writing, too. The caller closes it. */
int gem_export(int file, uint32_t handle, bool writable, int *ret_dmabuf);
int gem_size(int file, uint32_t handle, uint64_t *ret_bytes);
/* As for GEM_CREATE, and what the kernel itself has added. */
int gem_flags(int file, uint32_t handle, uint64_t *ret_flags);
/* Where it can be mapped in @file. */
int gem_mmap_offset(int file, uint32_t handle, uint64_t *ret_offset);
/* Maps its first @size_bytes for the CPU, without children. @at: NULL, or where it replaces what is there. */
int gem_map_cpu(int file, uint32_t handle, void *at, uint64_t size_bytes, int prot, void **ret);
/* The handle that the next object gets: the lowest that is free. */
int gem_next(int file, uint32_t *ret_handle);

/* Maps [@offset, @offset + @size_bytes) of the object at @va for the GPU; @flags: GEM_READ and so on. */
int gem_va_map(int file, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size_bytes, uint32_t flags);
int gem_va_unmap(int file, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size_bytes);
/* The same as gem_va_map() at an address that the CPU reserves. */
int gem_map_gpu(int file, uint32_t handle, uint64_t offset, uint64_t size_bytes, uint32_t flags, uint64_t *ret_va);

struct gem_mapping {
	uint64_t va, size_bytes, offset, flags;
};
/* What the kernel says is mapped: the number of mappings or -errno, nothing reported; -EINVAL before Linux 6.18. */
int gem_mappings(int file, uint32_t handle, struct gem_mapping *mappings, unsigned int max);

/* @bytes up to 256. */
int gem_metadata_set(int file, uint32_t handle, uint64_t flags, const void *data, uint32_t bytes);
/* Whether the object has these metadata: -EILSEQ, reported, if not. */
int gem_metadata_check(int file, uint32_t handle, uint64_t flags, const void *data, uint32_t bytes);

/* Sync objects: binary or with points. */
int syncobj_create(int file, bool signaled, uint32_t *ret_handle);
int syncobj_destroy(int file, uint32_t handle);
int syncobj_point_set(int file, uint32_t handle, uint64_t point);
int syncobj_point_get(int file, uint32_t handle, uint64_t *ret_point);
/* 0 signaled, -EINVAL without fence, -ETIME pending; nothing reported. */
int syncobj_state(int file, uint32_t handle);

/* A context, and NOPs that it has executed. */
int gem_context_create(int file, uint32_t *ret_context);
int gem_context_use(int file, uint32_t context);

#endif
