// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stand-in for the kernel: GEM handles and syncobjs of files of render nodes, and references to dma-bufs.
 *
 * memfds serve as dma-bufs; an object is known by the inode of its own. A file is known by its position, which
 * duplicates share and nobody moves.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "fake_kfd.h"
#include "fake_kfd_internal.h"

#define MAX_FILES   1024
#define MAX_OBJECTS 32
#define MAX_HANDLE  16
#define MAX_SYNCOBJ 8
#define MAX_MAPPINGS 4

#define NR_LIST_HANDLES 0x19
#define OP_MAPPING_INFO 2

struct object {
	ino_t inode; /* 0: none */
	int gpu;
	uint64_t offset, size, domains, flags;
	int nr_references, nr_handles; /* to its dma-buf but for descriptors; in all files and in the KFD's own */
	bool kfd_has_handle;
	uint32_t metadata_size;
	uint8_t metadata[256];
};

struct mapping {
	uint32_t handle, flags;
	uint64_t va, size, offset;
};

struct file {
	struct object *handles[MAX_HANDLE + 1];
	bool is_placeholder[MAX_HANDLE + 1];
	uint64_t alignments[MAX_HANDLE + 1]; /* of those */
	bool has_syncobj[MAX_SYNCOBJ + 1];
	uint64_t points[MAX_SYNCOBJ + 1];
	struct mapping mappings[MAX_MAPPINGS];
	size_t nr_mappings;
};

static struct object objects[MAX_OBJECTS];
static struct file files[MAX_FILES];
static off_t nr_files;
static int made[MAX_OBJECTS]; /* memfds of objects that the restored process has made */
static size_t nr_made;

/* ---- files and objects ---- */

static struct file *file_of(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (!at) {
		at = ++nr_files;
		if (at == MAX_FILES || lseek(fd, at, SEEK_SET) != at)
			abort(); /* of a test program */
		memset(&files[at], 0, sizeof(files[at]));
	}
	return &files[at];
}

static struct object *object_of(int memfd)
{
	struct stat st;

	if (fstat(memfd, &st))
		return NULL;
	for (size_t i = 0; i < MAX_OBJECTS; i++)
		if (objects[i].inode == st.st_ino)
			return &objects[i];
	return NULL;
}

void fake_gem_add(int memfd, int gpu, uint64_t offset, uint64_t size, bool is_vram)
{
	struct object *object = objects;
	struct stat st;

	while (object->inode)
		if (++object == objects + MAX_OBJECTS)
			abort(); /* of a test program */
	if (fstat(memfd, &st))
		abort();
	*object = (struct object){ .inode = st.st_ino, .gpu = gpu, .offset = offset, .size = size };
	object->domains = is_vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT;
}

void fake_gem_remove(int memfd)
{
	struct object *object = object_of(memfd);

	if (!object)
		return;
	for (off_t i = 1; i <= nr_files; i++)
		for (int handle = 1; handle <= MAX_HANDLE; handle++)
			if (files[i].handles[handle] == object)
				files[i].handles[handle] = NULL;
	*object = (struct object){ 0 };
}

void fake_gem_forget(void)
{
	while (nr_made) {
		fake_gem_remove(made[--nr_made]);
		close(made[nr_made]);
	}
}

void fake_gem_begin(void)
{
	fake_gem_forget();
	memset(objects, 0, sizeof(objects));
	nr_files = 0;
}

int fake_gem_gpu(int memfd)
{
	struct object *object = object_of(memfd);

	return object ? object->gpu : -1;
}

int fake_gem_made(size_t i)
{
	return i < nr_made ? made[i] : -1;
}

/* A file has a reference, and the object has one as long as it has a handle anywhere. */
static void add_handle(struct object *object)
{
	object->nr_references += 1 + !object->nr_handles++;
}

static void drop_handle(struct object *object)
{
	object->nr_references -= 1 + !--object->nr_handles;
}

void fake_gem_add_bo(int memfd)
{
	struct object *object = object_of(memfd);

	object->nr_references++;
	if (!object->kfd_has_handle)
		add_handle(object);
	object->kfd_has_handle = true;
}

void fake_gem_free_bo(int memfd)
{
	struct object *object = object_of(memfd);

	object->nr_references--;
	if (object->kfd_has_handle)
		drop_handle(object);
	object->kfd_has_handle = false;
}

void fake_gem_give(int fd, uint32_t handle, int memfd)
{
	struct object *object = object_of(memfd);

	file_of(fd)->handles[handle] = object;
	add_handle(object);
}

void fake_gem_map(int fd, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size)
{
	struct file *file = file_of(fd);

	file->mappings[file->nr_mappings++] =
		(struct mapping){ .handle = handle, .flags = 0xe, .va = va, .size = size, .offset = offset };
}

void fake_gem_syncobj(int fd, uint32_t handle, uint64_t point)
{
	file_of(fd)->has_syncobj[handle] = true;
	file_of(fd)->points[handle] = point;
}

void fake_gem_describe(int memfd, const char *text)
{
	struct object *object = object_of(memfd);

	object->metadata_size = (uint32_t)strlen(text);
	memcpy(object->metadata, text, object->metadata_size);
}

bool fake_gem_same(int fd_a, int fd_b)
{
	struct file *a = file_of(fd_a), *b = file_of(fd_b);

	for (int i = 1; i <= MAX_HANDLE; i++) {
		const struct object *x = a->handles[i], *y = b->handles[i];

		if (!x != !y || b->is_placeholder[i])
			return false;
		if (x && (x == y || x->size != y->size || x->metadata_size != y->metadata_size ||
			  memcmp(x->metadata, y->metadata, x->metadata_size)))
			return false;
	}
	for (size_t i = 0; i < b->nr_mappings; i++)
		if (i + 1 > a->nr_mappings || memcmp(&a->mappings[i + a->nr_mappings - b->nr_mappings], &b->mappings[i],
						     sizeof(b->mappings[i])))
			return false;
	return !memcmp(a->has_syncobj, b->has_syncobj, sizeof(a->has_syncobj)) &&
	       !memcmp(a->points, b->points, sizeof(a->points));
}

uint32_t fake_gem_at(int fd, uint64_t va)
{
	const struct file *file = file_of(fd);

	for (size_t i = 0; i < file->nr_mappings; i++)
		if (file->mappings[i].va == va)
			return file->mappings[i].handle;
	return 0;
}

size_t fake_gem_mappings(int fd)
{
	return file_of(fd)->nr_mappings;
}

int fake_gem_made_of(int fd, uint32_t handle, uint64_t *ret_offset)
{
	const struct object *object = file_of(fd)->handles[handle];

	for (size_t i = 0; object && i < nr_made; i++)
		if (object_of(made[i]) == object) {
			*ret_offset = object->offset;
			return made[i];
		}
	return -1;
}

/* ---- references ---- */

int fake_gem_references(int memfd)
{
	const struct object *object = object_of(memfd);
	int count = object ? object->nr_references : 0;
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		count += !fstat(atoi(entry->d_name), &st) && object && st.st_ino == object->inode;
	if (dir)
		closedir(dir);
	return count;
}

/* ---- ioctls ---- */

static int new_handle(struct file *file, struct object *object, uint32_t *ret)
{
	for (uint32_t i = 1; i <= MAX_HANDLE; i++)
		if (file->handles[i] == object && !file->is_placeholder[i]) {
			*ret = i;
			return 0;
		}
	for (uint32_t i = 1; i <= MAX_HANDLE; i++)
		if (!file->handles[i]) {
			file->handles[i] = object;
			add_handle(object);
			file->is_placeholder[i] = false;
			*ret = i;
			return 0;
		}
	return -ENOSPC;
}

/* Small ones are placeholders, which are alike. */
static int create(struct file *file, int gpu, union drm_amdgpu_gem_create *args)
{
	uint64_t size = args->in.bo_size;
	uint32_t handle = 0;
	int err, memfd;

	if (size == 4096) {
		err = new_handle(file, &objects[MAX_OBJECTS - 1], &handle);
		file->is_placeholder[handle] = !err;
		file->alignments[handle] = args->in.alignment;
		args->out.handle = handle;
		return err;
	}
	memfd = memfd_create("object", MFD_CLOEXEC);
	if (memfd < 0 || ftruncate(memfd, (off_t)size))
		abort(); /* of a test program */
	made[nr_made++] = memfd;
	fake_gem_add(memfd, gpu, 0x900000000ull + nr_made * 0x10000, size, args->in.domains & AMDGPU_GEM_DOMAIN_VRAM);
	err = new_handle(file, object_of(memfd), &handle);
	args->out.handle = handle;
	return err;
}

static int export_object(const struct object *object, struct drm_prime_handle *args)
{
	struct stat st;

	if (object == &objects[MAX_OBJECTS - 1])
		args->fd = dup(fake_first_dmabuf);
	else
		for (int fd = 3; fd < 1024; fd++)
			if (!fstat(fd, &st) && st.st_ino == object->inode) {
				args->fd = dup(fd);
				break;
			}
	return args->fd < 0 ? -ENOENT : 0;
}

struct list_entry {
	uint32_t handle, flags;
	uint64_t size, domains, alloc_flags, alignment;
};

static int list(const struct file *file, uint64_t *args)
{
	struct list_entry *entries = (void *)(uintptr_t)args[0];
	uint32_t *room = (uint32_t *)&args[1], nr = 0;

	for (uint32_t i = 1; i <= MAX_HANDLE; i++)
		nr += file->handles[i] != NULL;
	if (*room >= nr && nr) {
		for (uint32_t i = 1, n = 0; i <= MAX_HANDLE; i++)
			if (file->handles[i])
				entries[n++] = (struct list_entry){ .handle = i, .size = file->handles[i]->size };
	}
	*room = nr;
	return 0;
}

static int list_mappings(const struct file *file, uint32_t handle, uint64_t *args)
{
	uint64_t *out = (void *)(uintptr_t)args[1];
	uint32_t *room = (uint32_t *)&args[2], nr = 0;

	for (size_t i = 0; i < file->nr_mappings; i++) {
		const struct mapping *mapping = &file->mappings[i];

		if (mapping->handle != handle)
			continue;
		if (nr < *room)
			memcpy(out + 4 * nr, (uint64_t[]){ mapping->va, mapping->size, mapping->offset, mapping->flags | 1 }, 32);
		nr++;
	}
	*room = nr;
	return 0;
}

/* With its last handle an object leaves the address space. */
static void unmap_all(struct file *file, uint32_t handle)
{
	size_t nr = 0;

	for (size_t i = 0; i < file->nr_mappings; i++)
		if (file->mappings[i].handle != handle)
			file->mappings[nr++] = file->mappings[i];
	file->nr_mappings = nr;
}

static int object_ioctl(int gpu, struct file *file, uint32_t handle, struct object *object, unsigned long op, void *arg)
{
	struct drm_amdgpu_gem_metadata *metadata = arg;
	struct drm_amdgpu_gem_create_in *info;

	switch (op & 0xff) {
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP:
		/* Another GPU's memory is an object of its own in each file. */
		((union drm_amdgpu_gem_mmap *)arg)->out.addr_ptr =
			object->offset + (object->gpu == gpu ? 0 : (uint64_t)(file - files) << 40);
		return 0;
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP:
		if (((struct drm_amdgpu_gem_op *)arg)->op == OP_MAPPING_INFO)
			return list_mappings(file, handle, arg);
		info = (void *)(uintptr_t)((struct drm_amdgpu_gem_op *)arg)->value;
		info->bo_size = file->is_placeholder[handle] ? 4096 : object->size;
		info->domains = object->domains;
		info->domain_flags = object->flags;
		info->alignment = file->is_placeholder[handle] ? file->alignments[handle] : 4096;
		return 0;
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_METADATA:
		if (metadata->op == AMDGPU_GEM_METADATA_OP_SET_METADATA) {
			object->metadata_size = metadata->data.data_size_bytes;
			memcpy(object->metadata, metadata->data.data, object->metadata_size);
		} else {
			metadata->data.data_size_bytes = object->metadata_size;
			memcpy(metadata->data.data, object->metadata, object->metadata_size);
		}
		return 0;
	case 0x2d: /* PRIME_HANDLE_TO_FD */
		return export_object(object, arg);
	case 0x09: /* GEM_CLOSE */
		drop_handle(object);
		unmap_all(file, handle);
		file->handles[handle] = NULL;
		file->is_placeholder[handle] = false;
		return 0;
	default:
		return -EINVAL;
	}
}

/* The arguments of Linux 6.16, which has made them longer; an installed header may be older or newer. */
struct va_args {
	uint32_t handle, padding, operation, flags;
	uint64_t va, offset, size;
	uint64_t point;
	uint32_t syncobj;
};

static int unmap(struct file *file, const struct va_args *args)
{
	for (size_t i = 0; i < file->nr_mappings; i++)
		if (file->mappings[i].handle == args->handle && file->mappings[i].va == args->va) {
			file->mappings[i] = file->mappings[--file->nr_mappings];
			return 0;
		}
	return -ENOENT;
}

static int map(struct file *file, const struct va_args *args)
{
	if (args->handle > MAX_HANDLE || !file->handles[args->handle] || file->nr_mappings == MAX_MAPPINGS)
		return -EINVAL;
	for (size_t i = 0; i < file->nr_mappings; i++)
		if (file->mappings[i].va == args->va)
			return -EINVAL;
	file->mappings[file->nr_mappings++] = (struct mapping){
		.handle = args->handle,
		.flags = args->flags,
		.va = args->va,
		.size = args->size,
		.offset = args->offset,
	};
	return 0;
}

static int change_mapping(struct file *file, unsigned long op, const struct va_args *args)
{
	int err = args->operation == AMDGPU_VA_OP_UNMAP ? unmap(file, args) : map(file, args);

	if (!err && _IOC_SIZE(op) >= sizeof(*args) && args->syncobj)
		file->points[args->syncobj] = args->point;
	return err;
}

static int syncobj_ioctl(struct file *file, unsigned long op, void *arg)
{
	const struct drm_syncobj_timeline_array *array = arg;
	struct drm_syncobj_destroy *destroy = arg;
	uint32_t handle;

	if (op == DRM_IOCTL_SYNCOBJ_CREATE) {
		for (handle = 1; file->has_syncobj[handle]; handle++)
			;
		file->has_syncobj[handle] = true;
		file->points[handle] = 0;
		((struct drm_syncobj_create *)arg)->handle = handle;
		return 0;
	}
	if (op == DRM_IOCTL_SYNCOBJ_DESTROY) {
		file->has_syncobj[destroy->handle] = false;
		return 0;
	}
	handle = *(const uint32_t *)(uintptr_t)array->handles;
	if (handle > MAX_SYNCOBJ || !file->has_syncobj[handle])
		return -ENOENT;
	if (op == DRM_IOCTL_SYNCOBJ_QUERY)
		*(uint64_t *)(uintptr_t)array->points = file->points[handle];
	else if (op == DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL)
		file->points[handle] = *(const uint64_t *)(uintptr_t)array->points;
	else if (op == DRM_IOCTL_SYNCOBJ_WAIT || op == DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT)
		return file->points[handle] ? 0 : -EINVAL;
	return 0;
}

int fake_gem_ioctl(int gpu, int fd, unsigned long op, void *arg)
{
	uint32_t nr = op & 0xff, handle = *(uint32_t *)arg;
	struct file *file = file_of(fd);
	struct object *object;

	if (nr >= 0xbf && nr <= 0xcd)
		return syncobj_ioctl(file, op, arg);
	if (nr == DRM_COMMAND_BASE + NR_LIST_HANDLES)
		return fake_setup.lists_nothing ? -EINVAL : list(file, arg);
	if (op == DRM_IOCTL_AMDGPU_GEM_CREATE)
		return create(file, gpu, arg);
	if (nr == DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA)
		return change_mapping(file, op, arg);
	if (op == DRM_IOCTL_PRIME_FD_TO_HANDLE) {
		object = object_of(((struct drm_prime_handle *)arg)->fd);
		return object ? new_handle(file, object, &((struct drm_prime_handle *)arg)->handle) : -EINVAL;
	}
	if (!handle || handle > MAX_HANDLE || !file->handles[handle])
		return -ENOENT;
	return object_ioctl(gpu, file, handle, file->handles[handle], op, arg);
}
