// SPDX-License-Identifier: GPL-2.0-only
/*
 * GEM objects, sync objects and contexts of a render node by the bare ioctls. Nothing is kept here: the caller
 * remembers what it has made.
 */
#include <drm/drm.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdrm/amdgpu_drm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gem.h"
#include "kfd.h"
#include "report.h"

/* Of Linux 6.18, newer than some headers. */
struct gem_op_entries {
	uint32_t handle, op;
	uint64_t value;
	uint32_t num_entries, padding;
};
#define IOCTL_GEM_OP_ENTRIES DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct gem_op_entries)
#define OP_GET_MAPPING_INFO  2

#define IB_VA	 (1ull << 32)
#define IB_BYTES 4096u
#define FOR_EVER UINT64_MAX

static int called(int err, const char *what, uint32_t handle)
{
	return err ? report(-err, "%s (handle %u): %s", what, handle, strerror(-err)) : 0;
}

/* ---- objects ---- */

int gem_create(int file, uint64_t size_bytes, uint64_t domains, uint64_t flags, uint32_t *ret_handle)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = size_bytes, .domains = domains, .domain_flags = flags },
	};
	int err = kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_CREATE, &create);

	if (err)
		return report(-err, "GEM_CREATE of %" PRIu64 " bytes, domains %#" PRIx64 ", flags %#" PRIx64 ": %s",
			      size_bytes, domains, flags, strerror(-err));
	*ret_handle = create.out.handle;
	return 0;
}

int gem_userptr(int file, void *p, uint64_t size_bytes, uint32_t *ret_handle)
{
	struct drm_amdgpu_gem_userptr userptr = {
		.addr = (uintptr_t)p,
		.size = size_bytes,
		.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE,
	};
	int err = called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_USERPTR, &userptr), "GEM_USERPTR", 0);

	*ret_handle = userptr.handle;
	return err;
}

int gem_close(int file, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return called(kfd_ioctl(file, DRM_IOCTL_GEM_CLOSE, &args), "GEM_CLOSE", handle);
}

int gem_import(int file, int dmabuf, uint32_t *ret_handle)
{
	struct drm_prime_handle prime = { .fd = dmabuf };
	int err = called(kfd_ioctl(file, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), "PRIME_FD_TO_HANDLE", 0);

	*ret_handle = prime.handle;
	return err;
}

int gem_import_bo(int file, struct kfd *kfd, const struct kfd_bo *bo, uint32_t *ret_handle)
{
	int fd, err = kfd_bo_export(kfd, bo, &fd);

	if (err)
		return err;
	err = gem_import(file, fd, ret_handle);
	close(fd);
	return err;
}

int gem_export(int file, uint32_t handle, bool writable, int *ret_dmabuf)
{
	struct drm_prime_handle prime = { .handle = handle, .flags = DRM_CLOEXEC | (writable ? DRM_RDWR : 0) };
	int err = called(kfd_ioctl(file, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), "PRIME_HANDLE_TO_FD", handle);

	*ret_dmabuf = prime.fd;
	return err;
}

static int ask(int file, uint32_t handle, struct drm_amdgpu_gem_create_in *ret)
{
	struct drm_amdgpu_gem_op op = {
		.handle = handle,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (uintptr_t)ret,
	};

	*ret = (struct drm_amdgpu_gem_create_in){ 0 };
	return called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_OP, &op), "GEM_OP GET_GEM_CREATE_INFO", handle);
}

int gem_size(int file, uint32_t handle, uint64_t *ret_bytes)
{
	struct drm_amdgpu_gem_create_in info;
	int err = ask(file, handle, &info);

	*ret_bytes = info.bo_size;
	return err;
}

int gem_flags(int file, uint32_t handle, uint64_t *ret_flags)
{
	struct drm_amdgpu_gem_create_in info;
	int err = ask(file, handle, &info);

	*ret_flags = info.domain_flags;
	return err;
}

int gem_mmap_offset(int file, uint32_t handle, uint64_t *ret_offset)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	int err = called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_MMAP, &args), "GEM_MMAP", handle);

	*ret_offset = args.out.addr_ptr;
	return err;
}

int gem_map_cpu(int file, uint32_t handle, void *at, uint64_t size_bytes, int prot, void **ret)
{
	uint64_t offset;
	int err = gem_mmap_offset(file, handle, &offset);

	if (err)
		return err;
	*ret = mmap(at, size_bytes, prot, MAP_SHARED | (at ? MAP_FIXED : 0), file, (off_t)offset);
	if (*ret == MAP_FAILED || madvise(*ret, size_bytes, MADV_DONTFORK))
		return report(errno, "mmap of handle %u: %m", handle);
	return 0;
}

int gem_next(int file, uint32_t *ret_handle)
{
	int err = gem_create(file, KFD_PAGE_SIZE, GEM_DOMAIN_GTT, 0, ret_handle);

	return err ? err : gem_close(file, *ret_handle);
}

/* ---- the GPU's address space ---- */

static int gem_va(int file, uint32_t operation, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size_bytes,
		  uint32_t flags)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = operation,
		.flags = flags,
		.va_address = va,
		.offset_in_bo = offset,
		.map_size = size_bytes,
	};
	int err = kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_VA, &args);

	return err ? report(-err, "GEM_VA %s of handle %u at %#" PRIx64 ", %" PRIu64 " bytes: %s",
			    operation == AMDGPU_VA_OP_MAP ? "MAP" : "UNMAP", handle, va, size_bytes, strerror(-err))
		   : 0;
}

int gem_va_map(int file, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size_bytes, uint32_t flags)
{
	return gem_va(file, AMDGPU_VA_OP_MAP, handle, va, offset, size_bytes, flags);
}

int gem_va_unmap(int file, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size_bytes)
{
	return gem_va(file, AMDGPU_VA_OP_UNMAP, handle, va, offset, size_bytes, 0);
}

int gem_map_gpu(int file, uint32_t handle, uint64_t offset, uint64_t size_bytes, uint32_t flags, uint64_t *ret_va)
{
	void *p = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return report(errno, "no room for a mapping of %" PRIu64 " bytes: %m", size_bytes);
	*ret_va = (uint64_t)(uintptr_t)p;
	return gem_va_map(file, handle, *ret_va, offset, size_bytes, flags);
}

int gem_mappings(int file, uint32_t handle, struct gem_mapping *mappings, unsigned int max)
{
	struct gem_op_entries op = {
		.handle = handle,
		.op = OP_GET_MAPPING_INFO,
		.value = (uintptr_t)mappings,
		.num_entries = max,
	};
	int err = kfd_ioctl(file, IOCTL_GEM_OP_ENTRIES, &op);

	return err ? err : (int)op.num_entries;
}

/* ---- metadata ---- */

static int metadata(int file, uint32_t handle, struct drm_amdgpu_gem_metadata *args, uint32_t op)
{
	args->handle = handle;
	args->op = op;
	return called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_GEM_METADATA, args), "GEM_METADATA", handle);
}

int gem_metadata_set(int file, uint32_t handle, uint64_t flags, const void *data, uint32_t bytes)
{
	struct drm_amdgpu_gem_metadata args = { .data = { .flags = flags, .data_size_bytes = bytes } };

	memcpy(args.data.data, data, bytes);
	return metadata(file, handle, &args, AMDGPU_GEM_METADATA_OP_SET_METADATA);
}

int gem_metadata_check(int file, uint32_t handle, uint64_t flags, const void *data, uint32_t bytes)
{
	struct drm_amdgpu_gem_metadata args = { 0 };
	int err = metadata(file, handle, &args, AMDGPU_GEM_METADATA_OP_GET_METADATA);

	if (err)
		return err;
	if (args.data.flags != flags || args.data.data_size_bytes != bytes || memcmp(args.data.data, data, bytes))
		return report(EILSEQ,
			      "handle %u: metadata of %u bytes with flags %#" PRIx64
			      ", want %u bytes with flags %#" PRIx64 ", or their bytes differ",
			      handle, args.data.data_size_bytes, (uint64_t)args.data.flags, bytes, flags);
	return 0;
}

/* ---- sync objects ---- */

int syncobj_create(int file, bool signaled, uint32_t *ret_handle)
{
	struct drm_syncobj_create args = { .flags = signaled ? DRM_SYNCOBJ_CREATE_SIGNALED : 0 };
	int err = called(kfd_ioctl(file, DRM_IOCTL_SYNCOBJ_CREATE, &args), "SYNCOBJ_CREATE", 0);

	*ret_handle = args.handle;
	return err;
}

int syncobj_destroy(int file, uint32_t handle)
{
	struct drm_syncobj_destroy args = { .handle = handle };

	return called(kfd_ioctl(file, DRM_IOCTL_SYNCOBJ_DESTROY, &args), "SYNCOBJ_DESTROY", handle);
}

static struct drm_syncobj_timeline_array one_point(const uint32_t *handle, uint64_t *point)
{
	return (struct drm_syncobj_timeline_array){
		.handles = (uintptr_t)handle,
		.points = (uintptr_t)point,
		.count_handles = 1,
	};
}

int syncobj_point_set(int file, uint32_t handle, uint64_t point)
{
	struct drm_syncobj_timeline_array args = one_point(&handle, &point);

	return called(kfd_ioctl(file, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &args), "SYNCOBJ_TIMELINE_SIGNAL", handle);
}

int syncobj_point_get(int file, uint32_t handle, uint64_t *ret_point)
{
	struct drm_syncobj_timeline_array args = one_point(&handle, ret_point);

	return called(kfd_ioctl(file, DRM_IOCTL_SYNCOBJ_QUERY, &args), "SYNCOBJ_QUERY", handle);
}

int syncobj_state(int file, uint32_t handle)
{
	struct drm_syncobj_wait wait = { .handles = (uintptr_t)&handle, .count_handles = 1 };

	return kfd_ioctl(file, DRM_IOCTL_SYNCOBJ_WAIT, &wait);
}

/* ---- contexts ---- */

int gem_context_create(int file, uint32_t *ret_context)
{
	union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_ALLOC_CTX } };
	int err = called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_CTX, &args), "CTX ALLOC_CTX", 0);

	*ret_context = args.out.alloc.ctx_id;
	return err;
}

static int submit(int file, uint32_t context, uint32_t handle, uint64_t *ret_sequence)
{
	struct drm_amdgpu_bo_list_entry entry = { .bo_handle = handle };
	struct drm_amdgpu_bo_list_in list = {
		.bo_number = 1,
		.bo_info_size = sizeof(entry),
		.bo_info_ptr = (uintptr_t)&entry,
	};
	struct drm_amdgpu_cs_chunk_ib ib = { .va_start = IB_VA, .ib_bytes = 64, .ip_type = AMDGPU_HW_IP_DMA };
	struct drm_amdgpu_cs_chunk chunks[] = {
		{ AMDGPU_CHUNK_ID_BO_HANDLES, sizeof(list) / 4, (uintptr_t)&list },
		{ AMDGPU_CHUNK_ID_IB, sizeof(ib) / 4, (uintptr_t)&ib },
	};
	uint64_t at[] = { (uintptr_t)&chunks[0], (uintptr_t)&chunks[1] };
	union drm_amdgpu_cs cs = { .in = { .ctx_id = context, .num_chunks = 2, .chunks = (uintptr_t)at } };
	int err = called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_CS, &cs), "CS", handle);

	*ret_sequence = cs.out.handle;
	return err;
}

int gem_context_use(int file, uint32_t context)
{
	union drm_amdgpu_wait_cs wait = {
		.in = { .timeout = FOR_EVER, .ip_type = AMDGPU_HW_IP_DMA, .ctx_id = context }
	};
	uint64_t sequence;
	uint32_t handle;
	void *p;
	int err = gem_create(file, IB_BYTES, GEM_DOMAIN_GTT, 0, &handle);

	err = err ? err : gem_va_map(file, handle, IB_VA, 0, IB_BYTES, GEM_READ | GEM_EXECUTE);
	err = err ? err : gem_map_cpu(file, handle, NULL, IB_BYTES, PROT_READ | PROT_WRITE, &p);
	if (err)
		return err;
	memset(p, 0, IB_BYTES); /* NOPs */
	munmap(p, IB_BYTES);
	err = submit(file, context, handle, &sequence);
	wait.in.handle = sequence;
	err = err ? err : called(kfd_ioctl(file, DRM_IOCTL_AMDGPU_WAIT_CS, &wait), "WAIT_CS", handle);
	if (!err && wait.out.status)
		err = report(ETIME, "a job of NOPs does not end");
	err = err ? err : gem_va_unmap(file, handle, IB_VA, 0, IB_BYTES);
	return err ? err : gem_close(file, handle);
}
