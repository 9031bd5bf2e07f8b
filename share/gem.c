// SPDX-License-Identifier: GPL-2.0-only
/*
 * GEM objects of one open file of a render node. The installed <libdrm/amdgpu_drm.h> may be older than Linux 6.18:
 * what came with that is written down here.
 */
#include <sys/ioctl.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "share/gem.h"
#include "amdgpu_plugin_util.h"

/* ---- ABI of Linux 6.18 ---- */

struct list_handles {
	uint64_t entries; /* struct list_entry[num_entries] */
	uint32_t num_entries;
	uint32_t padding;
};
#define IOCTL_LIST_HANDLES DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list_handles)

struct list_entry {
	uint32_t gem_handle;
	uint32_t flags;
	uint64_t size, preferred_domains, alloc_flags, alignment;
};
#define LIST_IS_IMPORT 1u

struct gem_op {
	uint32_t handle;
	uint32_t op;
	uint64_t value; /* struct vm_entry[num_entries] */
	uint32_t num_entries;
	uint32_t padding;
};
#define IOCTL_GEM_OP	    DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct gem_op)
#define OP_GET_MAPPING_INFO 2u

struct vm_entry {
	uint64_t addr, size, offset, flags;
};

_Static_assert(sizeof(struct list_entry) == 40, "ABI");
_Static_assert(sizeof(struct gem_op) == 24, "ABI");

/* Not a property of mappings, but an order to the kernel: the page table is written later. */
#define VM_DELAY_UPDATE 1u

/* How often a list is asked for again that has grown meanwhile; the tasks are stopped, so it should not. */
#define LIST_TRIES 8

/* So many numbers without a syncobj end the search: a file gives out the lowest free one. */
#define SYNCOBJ_GAP 4096u

/* ---- handles ---- */

static int list_into(int fd, struct list_entry *entries, uint32_t room, uint32_t *ret_nr)
{
	struct list_handles args = { .entries = (uintptr_t)entries, .num_entries = room };
	int err = ioctl(fd, IOCTL_LIST_HANDLES, &args) ? -errno : 0;

	*ret_nr = args.num_entries;
	return err;
}

static int compare_entries(const void *a, const void *b)
{
	uint32_t x = ((const struct gem_entry *)a)->handle, y = ((const struct gem_entry *)b)->handle;

	return (x > y) - (x < y);
}

static int take_entries(const struct list_entry *entries, uint32_t nr, struct gem_entry **ret, size_t *ret_nr)
{
	*ret = calloc((size_t)nr + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		(*ret)[i] = (struct gem_entry){
			.handle = entries[i].gem_handle,
			.is_import = entries[i].flags & LIST_IS_IMPORT,
		};
	qsort(*ret, nr, sizeof(**ret), compare_entries);
	*ret_nr = nr;
	return 0;
}

int gem_list(int fd, struct gem_entry **ret, size_t *ret_nr)
{
	uint32_t nr = 0, room;
	int err = list_into(fd, NULL, 0, &nr);

	for (unsigned int tries = 0; !err && tries < LIST_TRIES; tries++) {
		_cleanup_free_ struct list_entry *entries = calloc((size_t)nr + 1, sizeof(*entries));

		room = nr;
		if (!entries)
			return -ENOMEM;
		err = room ? list_into(fd, entries, room, &nr) : 0;
		/* With too little room nothing was copied. */
		if (!err && nr <= room)
			return take_entries(entries, nr, ret, ret_nr);
		if (err == -EAGAIN)
			err = list_into(fd, NULL, 0, &nr);
	}
	return err ? err : -EAGAIN;
}

int gem_ask(int fd, uint32_t handle, struct gem_info *ret)
{
	struct drm_amdgpu_gem_create_in in = { 0 };
	struct drm_amdgpu_gem_op args = {
		.handle = handle,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (uintptr_t)&in,
	};
	int err = drm_call(fd, DRM_IOCTL_AMDGPU_GEM_OP, &args);

	*ret = (struct gem_info){
		.size = in.bo_size, .domains = in.domains, .flags = in.domain_flags, .alignment = in.alignment,
	};
	return err;
}

int gem_offset(int fd, uint32_t handle, uint64_t *ret)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	int err = drm_call(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);

	if (!err)
		*ret = args.out.addr_ptr;
	return err;
}

int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	struct drm_prime_handle args = { .fd = dmabuf_fd };
	int err = drm_call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	if (!err)
		*ret = args.handle;
	return err;
}

int gem_export(int fd, uint32_t handle, bool read_only)
{
	struct drm_prime_handle args = {
		.handle = handle, .flags = DRM_CLOEXEC | (read_only ? 0 : DRM_RDWR), .fd = -1,
	};
	int err = drm_call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	return err ? err : args.fd;
}

int gem_create(int fd, const struct gem_info *info, uint32_t *ret)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = info->size,
			.alignment = info->alignment,
			.domains = info->domains,
			.domain_flags = info->flags,
		},
	};
	int err = drm_call(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);

	if (!err)
		*ret = args.out.handle;
	return err;
}

int gem_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return drm_call(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

/* ---- mappings ---- */

static int mappings_into(int fd, uint32_t handle, struct vm_entry *entries, uint32_t room, uint32_t *ret_nr)
{
	struct gem_op args = {
		.handle = handle, .op = OP_GET_MAPPING_INFO, .value = (uintptr_t)entries, .num_entries = room,
	};
	int err = drm_call(fd, IOCTL_GEM_OP, &args);

	*ret_nr = args.num_entries;
	return err;
}

static int add_mappings(uint32_t handle, const struct vm_entry *entries, uint32_t nr, struct render_objects *objects)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct gem_mapping *grown = array_grow(objects->mappings, objects->nr_mappings, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		objects->mappings = grown;
		grown[objects->nr_mappings++] = (struct gem_mapping){
			.handle = handle,
			.va = entries[i].addr,
			.size = entries[i].size,
			.offset = entries[i].offset,
			.flags = (uint32_t)entries[i].flags & ~VM_DELAY_UPDATE,
		};
	}
	return 0;
}

int gem_mappings(int fd, uint32_t handle, struct render_objects *objects)
{
	struct vm_entry few[4];
	uint32_t nr = 0, room = ARRAY_SIZE(few);
	int err = mappings_into(fd, handle, few, room, &nr);

	if (!err && nr <= room)
		return nr ? add_mappings(handle, few, nr, objects) : 0;
	for (unsigned int tries = 0; !err && tries < LIST_TRIES; tries++) {
		_cleanup_free_ struct vm_entry *entries = calloc((size_t)nr + 1, sizeof(*entries));

		room = nr;
		if (!entries)
			return -ENOMEM;
		err = mappings_into(fd, handle, entries, room, &nr);
		if (!err && nr <= room)
			return add_mappings(handle, entries, nr, objects);
	}
	return err ? err : -EAGAIN;
}

int gem_map(int fd, const struct gem_mapping *mapping)
{
	struct drm_amdgpu_gem_va args = {
		.handle = mapping->handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = mapping->flags,
		.va_address = mapping->va,
		.offset_in_bo = mapping->offset,
		.map_size = mapping->size,
	};

	return drm_call(fd, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

/* ---- metadata ---- */

int gem_get_metadata(int fd, uint32_t handle, struct kfd_share *ret)
{
	struct drm_amdgpu_gem_metadata args = { .handle = handle, .op = AMDGPU_GEM_METADATA_OP_GET_METADATA };
	int err = drm_call(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);

	if (err)
		return err;
	if (args.data.data_size_bytes > sizeof(ret->metadata))
		return -EPROTO;
	ret->metadata_flags = args.data.flags;
	ret->tiling = args.data.tiling_info;
	ret->metadata_size = args.data.data_size_bytes;
	memcpy(ret->metadata, args.data.data, ret->metadata_size);
	return 0;
}

int gem_set_metadata(int fd, uint32_t handle, const struct kfd_share *share)
{
	struct drm_amdgpu_gem_metadata args = {
		.handle = handle,
		.op = AMDGPU_GEM_METADATA_OP_SET_METADATA,
		.data = {
			.flags = share->metadata_flags,
			.tiling_info = share->tiling,
			.data_size_bytes = share->metadata_size,
		},
	};

	memcpy(args.data.data, share->metadata, share->metadata_size);
	return drm_call(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);
}

/* ---- syncobjs ---- */

static int query_point(int fd, uint32_t handle, uint32_t flags, uint64_t *ret)
{
	struct drm_syncobj_timeline_array args = {
		.handles = (uintptr_t)&handle, .points = (uintptr_t)ret, .count_handles = 1, .flags = flags,
	};

	*ret = 0;
	return drm_call(fd, DRM_IOCTL_SYNCOBJ_QUERY, &args);
}

/* -EINVAL: it has no fence; -ETIME: that has not signalled. */
static int ask_fence(int fd, uint32_t handle)
{
	struct drm_syncobj_wait args = { .handles = (uintptr_t)&handle, .count_handles = 1 };

	return drm_call(fd, DRM_IOCTL_SYNCOBJ_WAIT, &args);
}

static int ask_syncobj(int fd, uint32_t handle, struct render_syncobj *ret, bool *ret_pending)
{
	uint64_t last = 0;
	int fence, err = query_point(fd, handle, 0, &ret->point);

	if (err)
		return err;
	err = query_point(fd, handle, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED, &last);
	if (err)
		return err == -ENOENT ? -EIO : err;
	fence = ask_fence(fd, handle);
	if (fence && fence != -EINVAL && fence != -ETIME)
		return fence == -ENOENT ? -EIO : fence;
	ret->handle = handle;
	ret->is_signalled = !fence;
	*ret_pending = fence == -ETIME || last > ret->point;
	return 0;
}

int gem_syncobjs(int fd, struct render_objects *objects, uint32_t *ret_pending)
{
	uint32_t last = 0;

	*ret_pending = 0;
	for (uint32_t handle = 1; handle <= last + SYNCOBJ_GAP; handle++) {
		struct render_syncobj syncobj, *grown;
		bool pending = false;
		int err = ask_syncobj(fd, handle, &syncobj, &pending);

		if (err == -ENOENT)
			continue;
		if (err)
			return err;
		last = handle;
		if (pending && !*ret_pending)
			*ret_pending = handle;
		grown = array_grow(objects->syncobjs, objects->nr_syncobjs, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		grown[objects->nr_syncobjs++] = syncobj;
		objects->syncobjs = grown;
	}
	return 0;
}

int gem_make_syncobj(int fd, const struct render_syncobj *syncobj, uint32_t *ret)
{
	uint64_t point = syncobj->point;
	struct drm_syncobj_create create = {
		.flags = syncobj->is_signalled && !point ? DRM_SYNCOBJ_CREATE_SIGNALED : 0,
	};
	struct drm_syncobj_timeline_array signal = {
		.handles = (uintptr_t)&create.handle, .points = (uintptr_t)&point, .count_handles = 1,
	};
	int err = drm_call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &create);

	if (!err && point)
		err = drm_call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &signal);
	if (!err)
		*ret = create.handle;
	return err;
}

int gem_drop_syncobj(int fd, uint32_t handle)
{
	struct drm_syncobj_destroy args = { .handle = handle };

	return drm_call(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &args);
}
