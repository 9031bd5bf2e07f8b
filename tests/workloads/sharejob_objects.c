// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lists of what a process of sharejob has made: KFD BOs, handles, mappings, dma-bufs, sync objects, files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dma-buf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

/* The next free entry of a list of objects, NULL (reported) when it is full. */
#define list_add(objects, list)                                                              \
	((objects)->nr_##list < SHARE_MAX_OBJECTS ? &(objects)->list[(objects)->nr_##list++] \
						  : (report(ENOSPC, "too many " #list), NULL))

/* ---- KFD BOs ---- */

int share_bo_new(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, enum kfd_memory kind,
		 struct kfd_bo **ret_bo)
{
	struct kfd_bo *bo = list_add(&me->objects, bos);
	int err = bo ? kfd_bo_alloc(&me->kfd, gpu->gpu, kind, SHARE_BYTES, bo) : -ENOSPC;

	err = err ? err : share_fill(buffer, gpu, bo->va, bo->cpu);
	err = err ? err : share_view_gpu(me, buffer, gpu, bo->va, 0, SHARE_PAGES, true);
	if (!err && bo->cpu)
		err = share_view_cpu(me, buffer, bo->cpu, 0, SHARE_PAGES, true);
	*ret_bo = bo;
	return err;
}

int share_bo_import(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, int dmabuf,
		    struct kfd_bo **ret_bo)
{
	struct kfd_bo *bo = list_add(&me->objects, bos);
	int err = bo ? kfd_bo_import(&me->kfd, gpu->gpu, dmabuf, SHARE_BYTES, bo) : -ENOSPC;

	*ret_bo = bo;
	return err ? err : share_view_gpu(me, buffer, gpu, bo->va, 0, SHARE_PAGES, true);
}

int share_bo_import_bare(struct share_process *me, struct share_gpu *gpu, int dmabuf)
{
	struct kfd_bo *bo = list_add(&me->objects, bos);

	return bo ? kfd_bo_import_bare(&me->kfd, gpu->gpu, dmabuf, SHARE_BYTES, bo) : -ENOSPC;
}

int share_bo_bare(struct share_process *me, struct share_gpu *gpu, enum kfd_memory kind, struct kfd_bo **ret_bo)
{
	struct kfd_bo *bo = list_add(&me->objects, bos);

	*ret_bo = bo;
	return bo ? kfd_bo_alloc_bare(&me->kfd, gpu->gpu, kind, SHARE_BYTES, bo) : -ENOSPC;
}

int share_bo_drop(struct share_process *me, struct kfd_bo *bo)
{
	return kfd_bo_free(&me->kfd, bo);
}

/* ---- handles ---- */

static int handle_keep(struct share_process *me, int file, uint32_t handle, uint64_t size_bytes)
{
	struct share_handle *entry;

	/* An import of what the file has already is the same handle. */
	for (unsigned int i = 0; i < me->objects.nr_handles; i++)
		if (me->objects.handles[i].file == file && me->objects.handles[i].handle == handle)
			return 0;
	entry = list_add(&me->objects, handles);
	if (!entry)
		return -ENOSPC;
	*entry = (struct share_handle){ .file = file, .handle = handle, .size_bytes = size_bytes };
	return 0;
}

int share_handle_create(struct share_process *me, int file, uint64_t domains, uint64_t flags, uint32_t *ret_handle)
{
	int err = gem_create(file, SHARE_BYTES, domains, flags, ret_handle);

	return err ? err : handle_keep(me, file, *ret_handle, SHARE_BYTES);
}

int share_handle_import(struct share_process *me, int file, int dmabuf, uint32_t *ret_handle)
{
	int err = gem_import(file, dmabuf, ret_handle);

	return err ? err : handle_keep(me, file, *ret_handle, SHARE_BYTES);
}

int share_flags(int file, int dmabuf, uint64_t *ret_flags)
{
	uint32_t handle;
	int err = gem_import(file, dmabuf, &handle);

	err = err ? err : gem_flags(file, handle, ret_flags);
	return err ? err : gem_close(file, handle);
}

int share_handle_of_bo(struct share_process *me, int file, const struct kfd_bo *bo, uint32_t *ret_handle)
{
	int fd, err = kfd_bo_export(&me->kfd, bo, &fd);

	if (err)
		return err;
	err = share_handle_import(me, file, fd, ret_handle);
	close(fd);
	return err;
}

int share_handle_drop(struct share_process *me, int file, uint32_t handle)
{
	struct share_objects *objects = &me->objects;

	for (unsigned int i = 0; i < objects->nr_handles; i++) {
		if (objects->handles[i].file != file || objects->handles[i].handle != handle)
			continue;
		objects->handles[i] = objects->handles[--objects->nr_handles];
		return gem_close(file, handle);
	}
	return report(ENOENT, "handle %u is not in the list", handle);
}

int share_handle_describe(struct share_process *me, int file, uint32_t handle, uint64_t tiling, const void *data,
			  uint32_t bytes)
{
	struct share_objects *objects = &me->objects;

	for (unsigned int i = 0; i < objects->nr_handles; i++) {
		struct share_handle *entry = &objects->handles[i];

		if (entry->file != file || entry->handle != handle)
			continue;
		entry->tiling = tiling;
		entry->metadata_bytes = bytes;
		memcpy(entry->metadata, data, bytes);
		return gem_metadata_set(file, handle, tiling, data, bytes);
	}
	return report(ENOENT, "handle %u is not in the list", handle);
}

static int handle_check(const struct share_handle *handle)
{
	uint64_t bytes;
	int err = gem_size(handle->file, handle->handle, &bytes);

	if (!err && bytes != handle->size_bytes)
		err = report(EILSEQ, "handle %u has %" PRIu64 " bytes, want %" PRIu64, handle->handle, bytes,
			     handle->size_bytes);
	if (!err && handle->metadata_bytes)
		err = gem_metadata_check(handle->file, handle->handle, handle->tiling, handle->metadata,
					 handle->metadata_bytes);
	return err;
}

/* ---- mappings ---- */

int share_map_gpu(struct share_process *me, unsigned int buffer, int file, struct share_gpu *gpu, uint32_t handle,
		  unsigned int first, unsigned int pages, uint32_t flags, uint64_t *ret_va)
{
	uint64_t bytes = pages * KFD_PAGE_SIZE, offset = first * KFD_PAGE_SIZE;
	struct share_mapping *mapping = list_add(&me->objects, mappings);
	int err = mapping ? gem_map_gpu(file, handle, offset, bytes, flags, ret_va) : -ENOSPC;

	if (err)
		return err;
	*mapping = (struct share_mapping){ file, handle, flags, *ret_va, offset, bytes };
	return gpu ? share_view_gpu(me, buffer, gpu, *ret_va, first, pages, flags & GEM_WRITE) : 0;
}

/* A mapping of the CPU that is there, of the first pages of a buffer. */
static int keep_cpu_mapping(struct share_process *me, unsigned int buffer, void *p, unsigned int pages, int prot)
{
	struct share_cpu_mapping *mapping = list_add(&me->objects, cpu_mappings);

	if (!mapping)
		return -ENOSPC;
	*mapping = (struct share_cpu_mapping){ p, pages * KFD_PAGE_SIZE };
	return prot == PROT_NONE ? 0 : share_view_cpu(me, buffer, p, 0, pages, prot & PROT_WRITE);
}

int share_map_cpu(struct share_process *me, unsigned int buffer, int file, uint32_t handle, unsigned int pages,
		  int prot, void *at)
{
	void *p;
	int err = gem_map_cpu(file, handle, at, pages * KFD_PAGE_SIZE, prot, &p);

	return err ? err : keep_cpu_mapping(me, buffer, p, pages, prot);
}

int share_bo_lend(struct kfd_bo *bo)
{
	void *p = mmap(bo->cpu, bo->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, bo->gpu->render_fd,
		       (off_t)bo->mmap_offset);

	return p == MAP_FAILED ? report(errno, "mmap of a BO that children inherit: %m") : 0;
}

int share_bo_borrow(struct share_process *me, unsigned int buffer, const struct kfd_bo *bo)
{
	return keep_cpu_mapping(me, buffer, bo->cpu, (unsigned int)(bo->size_bytes / KFD_PAGE_SIZE), PROT_READ | PROT_WRITE);
}

/* Whether the kernel lists the mapping as it was made; kernels that list none are believed. */
static int mapping_check(const struct share_mapping *mapping)
{
	struct gem_mapping list[SHARE_MAX_OBJECTS];
	int nr = gem_mappings(mapping->file, mapping->handle, list, SHARE_MAX_OBJECTS);

	if (nr == -EINVAL)
		return 0;
	if (nr < 0)
		return report(-nr, "GET_MAPPING_INFO of handle %u: %s", mapping->handle, strerror(-nr));
	for (int i = 0; i < nr; i++)
		if (list[i].va == mapping->va && list[i].size_bytes == mapping->size_bytes &&
		    list[i].offset == mapping->offset && list[i].flags == mapping->flags)
			return 0;
	return report(EILSEQ,
		      "handle %u is not mapped at %#" PRIx64 " as it was: offset %#" PRIx64 ", %" PRIu64
		      " bytes, flags %#x",
		      mapping->handle, mapping->va, mapping->offset, mapping->size_bytes, mapping->flags);
}

int share_objects_remap(struct share_process *me)
{
	struct share_objects *objects = &me->objects;
	int err = 0;

	for (unsigned int i = 0; !err && i < objects->nr_bos; i++)
		if (objects->bos[i].gpu)
			err = kfd_bo_remap(&me->kfd, &objects->bos[i]);
	for (unsigned int i = 0; !err && i < objects->nr_mappings; i++) {
		const struct share_mapping *m = &objects->mappings[i];

		err = gem_va_unmap(m->file, m->handle, m->va, m->offset, m->size_bytes);
		err = err ? err : gem_va_map(m->file, m->handle, m->va, m->offset, m->size_bytes, m->flags);
	}
	return err;
}

/* ---- dma-bufs ---- */

int share_dmabuf_keep(struct share_process *me, unsigned int buffer, int fd, const char *name)
{
	struct share_dmabuf *dmabuf = list_add(&me->objects, dmabufs);

	if (!dmabuf)
		return -ENOSPC;
	*dmabuf = (struct share_dmabuf){ .buffer = buffer, .fd = fd, .mode = fcntl(fd, F_GETFL) & O_ACCMODE };
	snprintf(dmabuf->name, sizeof(dmabuf->name), "%s", name ? name : "");
	if (name && ioctl(fd, DMA_BUF_SET_NAME_B, (uintptr_t)name))
		return report(errno, "DMA_BUF_SET_NAME of buffer %u: %m", buffer);
	return share_view_dmabuf(me, buffer, fd, dmabuf->mode == O_RDWR);
}

static int dmabuf_name(int fd, char name[32])
{
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return report(errno, "%s: %m", path);
	*name = '\0';
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "name: %31s", name) == 1)
			break;
	fclose(file);
	return 0;
}

static int dmabuf_check(const struct share_dmabuf *dmabuf)
{
	int mode = fcntl(dmabuf->fd, F_GETFL) & O_ACCMODE, err;
	char name[sizeof(dmabuf->name)];

	if (mode != dmabuf->mode)
		return report(EILSEQ, "dma-buf of buffer %u: mode %d, want %d", dmabuf->buffer, mode, dmabuf->mode);
	err = *dmabuf->name ? dmabuf_name(dmabuf->fd, name) : 0;
	if (!err && *dmabuf->name && strcmp(name, dmabuf->name))
		err = report(EILSEQ, "dma-buf of buffer %u: name \"%s\", want \"%s\"", dmabuf->buffer, name,
			     dmabuf->name);
	return err;
}

/* Tells the others the inodes of this process' dma-bufs. Whether those of each buffer are one file. */
static bool inodes_tell(struct share_process *me)
{
	_Atomic uint64_t *inodes = me->control->inodes[me->number];
	bool same = true;

	for (unsigned int i = 0; i < me->objects.nr_dmabufs; i++)
		inodes[me->objects.dmabufs[i].buffer] = 0;
	for (unsigned int i = 0; i < me->objects.nr_dmabufs; i++) {
		const struct share_dmabuf *dmabuf = &me->objects.dmabufs[i];
		struct stat st;

		if (fstat(dmabuf->fd, &st))
			return false;
		same = same && (!inodes[dmabuf->buffer] || inodes[dmabuf->buffer] == st.st_ino);
		inodes[dmabuf->buffer] = st.st_ino;
	}
	return same;
}

/* Whether all processes have told the same inodes of this one's buffers. */
static bool inodes_match(const struct share_process *me)
{
	for (unsigned int i = 0; i < me->objects.nr_dmabufs; i++) {
		unsigned int buffer = me->objects.dmabufs[i].buffer;

		for (unsigned int n = 0; n < me->nr_processes; n++) {
			uint64_t other = me->control->inodes[n][buffer];

			if (other && other != me->control->inodes[me->number][buffer])
				return false;
		}
	}
	return true;
}

int share_inodes_check(struct share_process *me)
{
	int err;

	for (unsigned int tries = 0; tries < 2; tries++) {
		bool same = inodes_tell(me);

		me->inode_checks++;
		err = share_meet(me);
		if (err)
			return err;
		if (!same || !inodes_match(me))
			me->control->inodes_differ = me->inode_checks;
		err = share_meet(me);
		if (err || me->control->inodes_differ != me->inode_checks)
			return err;
	}
	return report(EILSEQ, "the dma-bufs of a buffer are different files");
}

/* ---- sync objects and files ---- */

int share_syncobj_new(struct share_process *me, int file, uint64_t point, bool signaled)
{
	struct share_syncobj *syncobj = list_add(&me->objects, syncobjs);
	int err = syncobj ? syncobj_create(file, signaled, &syncobj->handle) : -ENOSPC;

	if (err)
		return err;
	syncobj->file = file;
	syncobj->point = point;
	err = point ? syncobj_point_set(file, syncobj->handle, point) : 0;
	syncobj->state = syncobj_state(file, syncobj->handle);
	return err;
}

static int syncobj_check(const struct share_syncobj *syncobj)
{
	int state = syncobj_state(syncobj->file, syncobj->handle), err;
	uint64_t point;

	if (state != syncobj->state)
		return report(EILSEQ, "syncobj %u: waiting for it is %d, want %d", syncobj->handle, state,
			      syncobj->state);
	if (!syncobj->point)
		return 0;
	err = syncobj_point_get(syncobj->file, syncobj->handle, &point);
	if (!err && point != syncobj->point)
		err = report(EILSEQ, "syncobj %u is at point %" PRIu64 ", want %" PRIu64, syncobj->handle, point,
			     syncobj->point);
	return err;
}

int share_file_keep(struct share_process *me, int fd, bool own, bool alone)
{
	struct share_file *file = list_add(&me->objects, files);

	if (!file)
		return -ENOSPC;
	*file = (struct share_file){ .fd = fd, .own = own, .alone = alone };
	return 0;
}

int share_file_open(struct share_process *me, const struct kfd_gpu *gpu, int *ret_file)
{
	*ret_file = kfd_gpu_reopen(gpu);
	return *ret_file < 0 ? *ret_file : share_file_keep(me, *ret_file, true, true);
}

/* ---- all of them ---- */

static int next_number(struct share_process *me, struct share_gpu *gpu, uint64_t *ret_number)
{
	struct kfd_bo bo;
	int err = kfd_bo_alloc_bare(&me->kfd, gpu->gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &bo);

	if (err)
		return err;
	*ret_number = bo.handle;
	return kfd_bo_free(&me->kfd, &bo);
}

int share_objects_note(struct share_process *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < me->nr_gpus; i++)
		err = next_number(me, &me->gpus[i], &me->gpus[i].next_number);
	for (unsigned int i = 0; !err && i < me->objects.nr_files; i++)
		if (me->objects.files[i].alone)
			err = gem_next(me->objects.files[i].fd, &me->objects.files[i].next_handle);
	return err;
}

/* The numbers that come next tell that no object is missing and none is too many. */
static int numbers_check(struct share_process *me)
{
	uint64_t number;
	uint32_t handle;
	int err = 0;

	for (unsigned int i = 0; !err && i < me->nr_gpus; i++) {
		struct share_gpu *gpu = &me->gpus[i];

		err = next_number(me, gpu, &number);
		if (!err && number != gpu->next_number)
			err = report(EILSEQ, "gpu %#x: a new KFD BO has handle %#" PRIx64 ", want %#" PRIx64,
				     gpu->gpu->gpu_id, number, gpu->next_number);
	}
	for (unsigned int i = 0; !err && i < me->objects.nr_files; i++) {
		const struct share_file *file = &me->objects.files[i];

		if (!file->alone)
			continue;
		err = gem_next(file->fd, &handle);
		if (!err && handle != file->next_handle)
			err = report(EILSEQ, "render file %u: a new object has handle %u, want %u", i, handle,
				     file->next_handle);
	}
	return err;
}

int share_objects_check(struct share_process *me)
{
	const struct share_objects *objects = &me->objects;
	int err = 0;

	for (unsigned int i = 0; !err && i < objects->nr_handles; i++)
		err = handle_check(&objects->handles[i]);
	for (unsigned int i = 0; !err && i < objects->nr_mappings; i++)
		err = mapping_check(&objects->mappings[i]);
	for (unsigned int i = 0; !err && i < objects->nr_dmabufs; i++)
		err = dmabuf_check(&objects->dmabufs[i]);
	for (unsigned int i = 0; !err && i < objects->nr_syncobjs; i++)
		err = syncobj_check(&objects->syncobjs[i]);
	return err ? err : numbers_check(me);
}

int share_objects_free(struct share_process *me)
{
	struct share_objects *o = &me->objects;
	int err = 0;

	for (unsigned int i = 0; !err && i < o->nr_mappings; i++) {
		const struct share_mapping *m = &o->mappings[i];

		err = gem_va_unmap(m->file, m->handle, m->va, m->offset, m->size_bytes);
	}
	for (unsigned int i = 0; !err && i < o->nr_cpu_mappings; i++)
		if (munmap(o->cpu_mappings[i].p, o->cpu_mappings[i].size_bytes))
			err = report(errno, "munmap: %m");
	for (unsigned int i = 0; !err && i < o->nr_mappings; i++)
		munmap((void *)(uintptr_t)o->mappings[i].va, o->mappings[i].size_bytes);
	for (unsigned int i = 0; !err && i < o->nr_handles; i++)
		err = gem_close(o->handles[i].file, o->handles[i].handle);
	for (unsigned int i = 0; !err && i < o->nr_bos; i++)
		err = kfd_bo_free(&me->kfd, &o->bos[i]);
	for (unsigned int i = 0; !err && i < o->nr_dmabufs; i++)
		if (close(o->dmabufs[i].fd))
			err = report(errno, "closing the dma-buf of buffer %u: %m", o->dmabufs[i].buffer);
	for (unsigned int i = 0; !err && i < o->nr_syncobjs; i++)
		err = syncobj_destroy(o->syncobjs[i].file, o->syncobjs[i].handle);
	for (unsigned int i = 0; !err && i < o->nr_files; i++)
		if (o->files[i].own && close(o->files[i].fd))
			err = report(errno, "closing a render file: %m");
	return err;
}

void share_objects_forget(struct share_process *me)
{
	memset(&me->objects, 0, sizeof(me->objects));
	me->nr_views = 0;
	me->nr_gpus = 0;
	close(me->kfd.fd);
	for (unsigned int i = 0; i < me->kfd.nr_gpus; i++) {
		if (me->kfd.gpus[i].render_fd >= 0)
			close(me->kfd.gpus[i].render_fd);
		me->kfd.gpus[i].doorbell_page = NULL;
		memset(&me->kfd.gpus[i].doorbells, 0, sizeof(me->kfd.gpus[i].doorbells));
	}
	me->kfd.fd = -1;
}
