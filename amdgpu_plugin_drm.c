// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render nodes. One is AMD's when its driver says so by name.
 */
#include <inttypes.h>
#include <sys/ioctl.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "kernel/kernel.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

/* DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES of Linux 6.18: asked with no room, it tells the number. */
struct list_handles {
	uint64_t entries;
	uint32_t num_entries;
	uint32_t padding;
};
#define IOCTL_LIST_HANDLES DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list_handles)

/* DRM_IOCTL_AMDGPU_GEM_VA of Linux 6.16, which tells when page tables are written. The installed header may be older. */
struct gem_va {
	uint32_t handle, padding, operation, flags;
	uint64_t va_address, offset_in_bo, map_size;
	uint64_t timeline_point;
	uint32_t timeline_syncobj, nr_input_syncobjs;
	uint64_t input_syncobjs;
};
#define IOCTL_GEM_VA DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA, struct gem_va)

_Static_assert(sizeof(struct gem_va) == 64, "ABI");

/* The driver's version in Linux 6.16. */
#define HAS_TIMELINES 64

/* Clearing takes microseconds; a GPU that hangs is reset after some seconds. */
#define CLEAR_SECONDS 20

/* Where handles cannot be listed, they are tried up to this one. A file gives out the lowest free number. */
#define MAX_TRIED_HANDLE 4096

/* The last context that a file can have (amdgpu_ctx.c of Linux). */
#define MAX_CONTEXT 4095

int drm_is_amd(int fd)
{
	char name[16] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	if (ioctl(fd, DRM_IOCTL_VERSION, &version))
		return -errno;
	return !strcmp(name, "amdgpu");
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

/* Handle by handle: any but an unknown one has a size to tell. */
static int try_handles(int fd, uint32_t *ret)
{
	struct drm_amdgpu_gem_create_in info;
	uint32_t handle, count = 0;

	for (handle = 1; handle <= MAX_TRIED_HANDLE; handle++) {
		struct drm_amdgpu_gem_op args = {
			.handle = handle,
			.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
			.value = (uintptr_t)&info,
		};

		if (!ioctl(fd, DRM_IOCTL_AMDGPU_GEM_OP, &args))
			count++;
		else if (errno != ENOENT)
			return -errno;
	}
	*ret = count;
	return 0;
}

int drm_count_objects(int fd, uint32_t *ret)
{
	struct list_handles args = { 0 };

	if (ioctl(fd, IOCTL_LIST_HANDLES, &args))
		return errno == EINVAL ? try_handles(fd, ret) : -errno;
	*ret = args.num_entries;
	return 0;
}

/* A context that is not there has no state to ask for. */
int drm_count_contexts(int fd, uint32_t *ret)
{
	*ret = 0;
	for (uint32_t id = 1; id <= MAX_CONTEXT; id++) {
		union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_GET_STABLE_PSTATE, .ctx_id = id } };

		if (!ioctl(fd, DRM_IOCTL_AMDGPU_CTX, &args))
			(*ret)++;
		else if (errno != EINVAL)
			return -errno;
	}
	return 0;
}

static int count_syncobjs(int fd, uint32_t *ret)
{
	*ret = 0;
	for (uint32_t handle = 1; handle <= MAX_TRIED_HANDLE; handle++) {
		uint64_t point = 0;
		struct drm_syncobj_timeline_array args = {
			.handles = (uintptr_t)&handle,
			.points = (uintptr_t)&point,
			.count_handles = 1,
		};

		if (!ioctl(fd, DRM_IOCTL_SYNCOBJ_QUERY, &args))
			(*ret)++;
		else if (errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* "drm-memory-gtt: 4 KiB"; "drm-engine-gfx: 7 ns". VRAM is left out: page tables stay there when all was unmapped. */
static int read_fdinfo(int fd, struct drm_holdings *holdings)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[128];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		uint64_t kib;

		if (sscanf(line, "drm-memory-gtt: %" SCNu64, &kib) == 1)
			holdings->memory_kib = kib;
		holdings->has_computed |= !strncmp(line, "drm-engine-", strlen("drm-engine-"));
	}
	return 0;
}

int drm_ask_holdings(int fd, struct drm_holdings *ret)
{
	int err;

	*ret = (struct drm_holdings){ 0 };
	err = drm_count_contexts(fd, &ret->nr_contexts);
	if (!err)
		err = count_syncobjs(fd, &ret->nr_syncobjs);
	return err ? err : read_fdinfo(fd, ret);
}

/* ---- a new address space ---- */

/* One page is mapped and unmapped again; @syncobj gets a point for either. */
static int touch_page_tables(int fd, uint32_t handle, uint32_t syncobj)
{
	struct gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE,
		.va_address = 1 << 30,
		.map_size = 4096,
		.timeline_point = 1,
		.timeline_syncobj = syncobj,
	};
	int err = drm_call(fd, IOCTL_GEM_VA, &args);

	args.operation = AMDGPU_VA_OP_UNMAP;
	args.timeline_point = 2;
	return err ? err : drm_call(fd, IOCTL_GEM_VA, &args);
}

static int wait_for_point(int fd, uint32_t syncobj, uint64_t point)
{
	struct drm_syncobj_timeline_wait args = {
		.handles = (uintptr_t)&syncobj,
		.points = (uintptr_t)&point,
		.timeout_nsec = (int64_t)((monotonic_seconds() + CLEAR_SECONDS) * 1e9),
		.count_handles = 1,
	};

	return drm_call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &args);
}

static int touch_and_wait(int fd, uint32_t handle)
{
	struct drm_syncobj_create create = { 0 };
	struct drm_syncobj_destroy destroy = { 0 };
	int left, err = drm_call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &create);

	if (err)
		return err;
	err = touch_page_tables(fd, handle, create.handle);
	if (!err)
		err = wait_for_point(fd, create.handle, 2);
	destroy.handle = create.handle;
	left = drm_call(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &destroy);
	return err ? err : left;
}

int drm_wait_until_clear(int fd)
{
	union drm_amdgpu_gem_create create = { .in = { .bo_size = 4096, .domains = AMDGPU_GEM_DOMAIN_GTT } };
	struct drm_gem_close close_args = { 0 };
	struct drm_version version = { 0 };
	int left, err = drm_call(fd, DRM_IOCTL_VERSION, &version);

	if (err || version.version_minor < HAS_TIMELINES)
		return err;
	err = drm_call(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create);
	if (err)
		return err;
	err = touch_and_wait(fd, create.out.handle);
	close_args.handle = create.out.handle;
	left = drm_call(fd, DRM_IOCTL_GEM_CLOSE, &close_args);
	return err ? err : left;
}
