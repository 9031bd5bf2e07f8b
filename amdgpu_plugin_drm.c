// SPDX-License-Identifier: GPL-2.0-only
/*
 * AMD's render nodes and the GEM objects of one open file. A node is AMD's when its driver says so by name. The installed
 * <libdrm/amdgpu_drm.h> may be older than Linux 6.18: what is younger is written down here.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

/* ---- ABI of Linux 6.16 and 6.18 ---- */

/* Asked with no room, the kernel says how many handles there are. */
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

/* DRM_IOCTL_AMDGPU_GEM_VA of Linux 6.16, which tells when page tables are written. */
struct gem_va {
	uint32_t handle, padding, operation, flags;
	uint64_t va_address, offset_in_bo, map_size;
	uint64_t timeline_point;
	uint32_t timeline_syncobj, nr_input_syncobjs;
	uint64_t input_syncobjs;
};
#define IOCTL_GEM_VA DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA, struct gem_va)

_Static_assert(sizeof(struct list_entry) == 40, "ABI");
_Static_assert(sizeof(struct gem_op) == 24, "ABI");
_Static_assert(sizeof(struct gem_va) == 64, "ABI");

/* Not a property of mappings, but an order to the kernel: the page table is written later. */
#define VM_DELAY_UPDATE 1u

/* The driver's version in Linux 6.16. */
#define HAS_TIMELINES 64

/* ---- limits of the plugin ---- */

/* Clearing takes microseconds; a GPU that hangs is reset after some seconds. */
#define CLEAR_SECONDS 20

/* How often a list is asked for again that has grown meanwhile; the tasks are stopped, so it should not. */
#define LIST_TRIES 8

/* Numbers that are not listed are tried, until so many in a row are free: a file gives out the lowest free one. */
#define HANDLE_GAP 4096u
/* Contexts and syncobjs are few, and asked for in each file of each process. */
#define FEW_GAP 512u

/* ---- nodes ---- */

int drm_is_amd(int fd)
{
	char name[16] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };
	int err = drm_call(fd, DRM_IOCTL_VERSION, &version);

	return err ? err : !strcmp(name, "amdgpu");
}

int drm_open_minor_as(uint32_t minor_number, int flags)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor_number);
	fd = device_open(path, device_render_number(minor_number), flags);
	if (fd < 0)
		return fd;
	r = drm_is_amd(fd);
	if (r < 0)
		return r;
	return r ? steal_fd(&fd) : -EMEDIUMTYPE;
}

int drm_open_minor(uint32_t minor_number)
{
	return drm_open_minor_as(minor_number, O_RDWR);
}

int drm_minor_is_amd(uint32_t minor_number)
{
	_cleanup_close_ int fd = drm_open_minor(minor_number);

	return fd >= 0 ? 1 : fd == -EMEDIUMTYPE ? 0 : fd;
}

/* ---- handles ---- */

int gem_list(int fd, struct gem_entry **ret, size_t *ret_nr)
{
	uint32_t room = 0;

	for (unsigned int tries = 0; tries < LIST_TRIES; tries++) {
		_cleanup_free_ struct list_entry *entries = calloc((size_t)room + 1, sizeof(*entries));
		struct list_handles args = { .entries = (uintptr_t)entries, .num_entries = room };
		int err = entries ? 0 : -ENOMEM;

		if (!err && ioctl(fd, IOCTL_LIST_HANDLES, &args))
			err = -errno;
		if (err && err != -EAGAIN)
			return err;
		/* With too little room nothing was copied. */
		if (err || args.num_entries > room) {
			room = err ? 0 : args.num_entries;
			continue;
		}
		*ret = calloc((size_t)args.num_entries + 1, sizeof(**ret));
		if (!*ret)
			return -ENOMEM;
		for (uint32_t i = 0; i < args.num_entries; i++)
			(*ret)[i] = (struct gem_entry){
				.handle = entries[i].gem_handle,
				.is_import = entries[i].flags & LIST_IS_IMPORT,
			};
		qsort(*ret, args.num_entries, sizeof(**ret), compare_u32);
		*ret_nr = args.num_entries;
		return 0;
	}
	return -EAGAIN;
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

int gem_create_page(int fd, uint32_t *ret)
{
	return gem_create(fd, &(struct gem_info){ .size = PAGE_BYTES, .domains = AMDGPU_GEM_DOMAIN_GTT }, ret);
}

int gem_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return drm_call(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

/* ---- mappings ---- */

int gem_mappings(int fd, uint32_t handle, struct render_objects *objects)
{
	_cleanup_free_ struct vm_entry *many = NULL;
	struct vm_entry few[4];
	uint32_t room = ARRAY_SIZE(few);

	for (unsigned int tries = 0; tries < LIST_TRIES; tries++) {
		const struct vm_entry *entries = many ? many : few;
		struct gem_op args = {
			.handle = handle, .op = OP_GET_MAPPING_INFO, .value = (uintptr_t)entries, .num_entries = room,
		};
		int err = drm_call(fd, IOCTL_GEM_OP, &args);
		bool has_room = args.num_entries <= room;

		for (uint32_t i = 0; !err && has_room && i < args.num_entries; i++) {
			const struct gem_mapping mapping = {
				.handle = handle,
				.va = entries[i].addr,
				.size = entries[i].size,
				.offset = entries[i].offset,
				.flags = (uint32_t)entries[i].flags & ~VM_DELAY_UPDATE,
			};

			err = array_add(objects->mappings, objects->nr_mappings, mapping);
		}
		if (err || has_room)
			return err;
		free(many);
		room = args.num_entries;
		many = calloc(room, sizeof(*many));
		if (!many)
			return -ENOMEM;
	}
	return -EAGAIN;
}

static int change_mapping(int fd, uint32_t operation, const struct gem_mapping *mapping)
{
	struct drm_amdgpu_gem_va args = {
		.handle = mapping->handle,
		.operation = operation,
		.flags = mapping->flags,
		.va_address = mapping->va,
		.offset_in_bo = mapping->offset,
		.map_size = mapping->size,
	};

	return drm_call(fd, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

int gem_map(int fd, const struct gem_mapping *mapping)
{
	return change_mapping(fd, AMDGPU_VA_OP_MAP, mapping);
}

int gem_unmap(int fd, const struct gem_mapping *mapping)
{
	return change_mapping(fd, AMDGPU_VA_OP_UNMAP, mapping);
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

static int ask_syncobj(int fd, uint32_t handle, struct render_syncobj *ret, bool *ret_pending)
{
	struct drm_syncobj_wait args = { .handles = (uintptr_t)&handle, .count_handles = 1 };
	uint64_t last = 0;
	int fence, err = query_point(fd, handle, 0, &ret->point);

	if (err)
		return err;
	err = query_point(fd, handle, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED, &last);
	if (err)
		return err == -ENOENT ? -EIO : err;
	/* -EINVAL: it has no fence; -ETIME: that has not signalled. */
	fence = drm_call(fd, DRM_IOCTL_SYNCOBJ_WAIT, &args);
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
	for (uint32_t handle = 1; handle <= last + FEW_GAP; handle++) {
		struct render_syncobj syncobj;
		bool pending = false;
		int err = ask_syncobj(fd, handle, &syncobj, &pending);

		if (err == -ENOENT)
			continue;
		if (err)
			return err;
		last = handle;
		if (pending && !*ret_pending)
			*ret_pending = handle;
		err = array_add(objects->syncobjs, objects->nr_syncobjs, syncobj);
		if (err)
			return err;
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

	*ret = create.handle;
	return err || !point ? err : drm_call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &signal);
}

int gem_drop_syncobj(int fd, uint32_t handle)
{
	struct drm_syncobj_destroy args = { .handle = handle };

	return drm_call(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &args);
}

/* ---- what a file holds ---- */

int drm_count_objects(int fd, uint32_t *ret)
{
	uint32_t last = 0;

	*ret = 0;
	for (uint32_t handle = 1; handle <= last + HANDLE_GAP; handle++) {
		struct gem_info info;
		int err = gem_ask(fd, handle, &info);

		if (err && err != -ENOENT)
			return err;
		last = err ? last : handle;
		*ret += !err;
	}
	return 0;
}

int drm_count_losses(int fd, uint32_t *ret)
{
	struct drm_amdgpu_info args = {
		.return_pointer = (uintptr_t)ret, .return_size = sizeof(*ret), .query = AMDGPU_INFO_VRAM_LOST_COUNTER,
	};

	return drm_call(fd, DRM_IOCTL_AMDGPU_INFO, &args);
}

static int ask_losses(const struct task_file *file, uint32_t *ret)
{
	int err = file->minor ? drm_count_losses(file->fd, ret) : 0;

	return err ? fail(err, "pid %d: cannot ask renderD%u for resets: %m", file->pid, file->minor) : 0;
}

int losses_note(const struct task_files *files, uint32_t **ret)
{
	int err = 0;

	*ret = calloc(files->count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; !err && i < files->count; i++)
		err = ask_losses(&files->files[i], &(*ret)[i]);
	return err;
}

int losses_check(const struct task_files *files, const uint32_t *losses)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct task_file *file = &files->files[i];
		uint32_t now = 0;
		int err = ask_losses(file, &now);

		if (err)
			return err;
		if (now != losses[i])
			return fail(-EIO,
				    "pid %d: the driver has reset the GPU of renderD%u meanwhile, and what was in its "
				    "VRAM is lost: "
				    "the process cannot be saved any more (the kernel's log may say why)",
				    file->pid, file->minor);
	}
	return 0;
}

/* A context that is not there has no state to ask for. */
int drm_count_contexts(int fd, uint32_t *ret)
{
	uint32_t last = 0;

	*ret = 0;
	for (uint32_t id = 1; id <= last + FEW_GAP; id++) {
		union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_GET_STABLE_PSTATE, .ctx_id = id } };
		int err = drm_call(fd, DRM_IOCTL_AMDGPU_CTX, &args);

		if (err && err != -EINVAL)
			return err;
		*ret += !err;
		last = err ? last : id;
	}
	return 0;
}

int drm_ask_holdings(int fd, struct drm_holdings *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct render_objects objects = { 0 };
	char path[64], line[128];
	uint32_t pending;
	uint64_t kib;
	int err;

	*ret = (struct drm_holdings){ 0 };
	err = drm_count_contexts(fd, &ret->nr_contexts);
	if (err)
		return err;
	err = gem_syncobjs(fd, &objects, &pending);
	ret->nr_syncobjs = (uint32_t)objects.nr_syncobjs;
	free(objects.syncobjs);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	/* "drm-memory-gtt: 4 KiB"; "drm-engine-gfx: 7 ns". VRAM is left out: page tables stay there when all was unmapped. */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "drm-memory-gtt: %" SCNu64, &kib) == 1)
			ret->memory_kib = kib;
		ret->has_computed |= !strncmp(line, "drm-engine-", strlen("drm-engine-"));
	}
	return 0;
}

/* ---- a new address space ---- */

/* One page is mapped and unmapped again; a syncobj gets a point for either. */
static int touch_and_wait(int fd, uint32_t handle)
{
	const struct render_syncobj none = { 0 };
	struct gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE,
		.va_address = 1 << 30,
		.map_size = PAGE_BYTES,
		.timeline_point = 1,
	};
	struct drm_syncobj_timeline_wait wait = {
		.handles = (uintptr_t)&args.timeline_syncobj, .points = (uintptr_t)&args.timeline_point, .count_handles = 1,
	};
	int left, err = gem_make_syncobj(fd, &none, &args.timeline_syncobj);

	if (err)
		return err;
	err = drm_call(fd, IOCTL_GEM_VA, &args);
	args.operation = AMDGPU_VA_OP_UNMAP;
	args.timeline_point = 2;
	if (!err)
		err = drm_call(fd, IOCTL_GEM_VA, &args);
	if (!err) {
		wait.timeout_nsec = (int64_t)kernel_time_in(CLEAR_SECONDS * 1000000000ull, monotonic_offset_ns());
		err = drm_call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &wait);
	}
	left = gem_drop_syncobj(fd, args.timeline_syncobj);
	return err ? err : left;
}

int drm_wait_until_clear(int fd)
{
	struct drm_version version = { 0 };
	uint32_t handle;
	int left, err = drm_call(fd, DRM_IOCTL_VERSION, &version);

	if (err || version.version_minor < HAS_TIMELINES)
		return err;
	err = gem_create_page(fd, &handle);
	if (err)
		return err;
	err = touch_and_wait(fd, handle);
	left = gem_close(fd, handle);
	return err ? err : left;
}
