// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second step of a restore with shared buffers: what others own is imported, and the files get their handles.
 *
 * The kernel takes the lowest free number: handles are made in ascending order, and small objects hold the gaps until
 * all are there. An object that a file has already gets no second handle, so each is imported once.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "amdgpu_plugin_drm.h"
#include "share/table.h"

void share_task_done(struct share_task *task)
{
	for (size_t i = 0; i < task->nr_files; i++)
		render_objects_done(&task->files[i].objects);
	free(task->files);
	free(task->fillers);
	*task = (struct share_task){ 0 };
}

int share_add_file(struct share_task *task, int kept, uint32_t minor, struct render_objects *objects)
{
	struct share_file *grown = reallocarray(task->files, task->nr_files + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[task->nr_files++] = (struct share_file){ .kept = kept, .minor = minor, .objects = *objects };
	task->files = grown;
	*objects = (struct render_objects){ 0 };
	share_table_file(task->table);
	return 0;
}

int share_open_dmabuf(struct share_table *table, const struct dmabuf_image *image)
{
	int fd, err = share_table_begin(table, image->nr_sharers);

	fd = err ? err : share_table_get(table, image->buffer);
	if (fd < 0 || !image->name[0] || !ioctl(fd, DMA_BUF_SET_NAME_B, (uint64_t)(uintptr_t)image->name))
		return fd;
	err = -errno;
	pr_err("cannot give the dma-buf of buffer %u its name \"%s\": %s", image->buffer, image->name, strerror(-err));
	close(fd);
	return err;
}

/* ---- imports into the KFD ---- */

struct import {
	size_t bo;
	uint32_t gpu_id, handle;
};

static int compare_imports(const void *a, const void *b)
{
	const struct import *x = a, *y = b;

	if (x->gpu_id != y->gpu_id)
		return x->gpu_id < y->gpu_id ? -1 : 1;
	return (x->handle > y->handle) - (x->handle < y->handle);
}

static int import_bo(struct share_table *table, int kfd, const struct kfd_state *state, size_t i)
{
	const struct bo *bo = &state->bos[i];
	_cleanup_close_ int dmabuf = share_table_get(table, bo->share.buffer);
	struct bo_record record;
	uint64_t handle = 0;
	int err = dmabuf;

	if (dmabuf < 0)
		return err;
	err = records_bo(state, i, &record);
	if (!err)
		err = kfd_import_dmabuf(kfd, bo->gpu_id, bo->addr, dmabuf, &handle);
	if (!err && handle != kfd_handle(bo->gpu_id, record.handle)) {
		pr_err("gpu %#x: shared buffer %u gets the handle %#" PRIx64 " instead of %#" PRIx64, bo->gpu_id,
		       bo->share.buffer, handle, kfd_handle(bo->gpu_id, record.handle));
		return -EPROTO;
	}
	if (!err)
		err = kfd_map(kfd, handle, record.mapped_gpus, records_nr_mapped(&record));
	if (err)
		pr_err("gpu %#x: cannot import shared buffer %u of %" PRIu64 " bytes: %s", bo->gpu_id,
		       bo->share.buffer, bo->size, strerror(-err));
	return err;
}

static int import_bos(struct share_task *task, int kfd, const struct kfd_state *state)
{
	_cleanup_free_ struct import *imports = calloc((size_t)state->nr_bos + 1, sizeof(*imports));
	size_t nr = 0;
	int err = imports ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < state->nr_records; i++) {
		struct bo_record record = { 0 };

		if (state->bos[i].share.kind != KFD_BO_IMPORT)
			continue;
		err = records_bo(state, i, &record);
		imports[nr++] = (struct import){ i, state->bos[i].gpu_id, record.handle };
	}
	if (nr)
		qsort(imports, nr, sizeof(*imports), compare_imports);
	for (size_t i = 0; !err && i < nr; i++)
		err = import_bo(task->table, kfd, state, imports[i].bo);
	for (size_t i = 0; !err && i < task->nr_fillers; i++) {
		err = kfd_free(kfd, kfd_handle(task->fillers[i].gpu_id, task->fillers[i].handle));
		if (err)
			pr_err("gpu %#x: cannot free the number %u again: %s", task->fillers[i].gpu_id,
			       task->fillers[i].handle, strerror(-err));
	}
	return err;
}

/* ---- files of render nodes ---- */

/* Makes what takes numbers: 0 and *ret, or -errno. */
typedef int (*make_fn)(const struct share_task *task, int fd, const void *what, uint32_t *ret);

static int make_handle(const struct share_task *task, int fd, const void *what, uint32_t *ret)
{
	const struct gem_handle *handle = what;
	_cleanup_close_ int dmabuf = -1;

	if (!handle)
		return gem_create_page(fd, ret);
	dmabuf = share_table_get(task->table, handle->buffer);
	return dmabuf < 0 ? dmabuf : gem_import(fd, dmabuf, ret);
}

static int make_syncobj(const struct share_task *task, int fd, const void *what, uint32_t *ret)
{
	const struct render_syncobj none = { 0 };

	(void)task;
	return gem_make_syncobj(fd, what ? what : &none, ret);
}

/* One kind of numbers of a file. */
struct numbers {
	const char *name;
	make_fn make;
	int (*drop)(int fd, uint32_t number);
};
static const struct numbers handle_numbers = { "handle", make_handle, gem_close };
static const struct numbers syncobj_numbers = { "syncobj", make_syncobj, gem_drop_syncobj };

static int make_number(const struct share_task *task, const struct share_file *file, int fd,
		       const struct numbers *numbers, const void *what, uint32_t wanted)
{
	uint32_t got = 0;
	int err = numbers->make(task, fd, what, &got);

	if (err)
		pr_err("renderD%u: cannot make %s %u: %s", file->minor, numbers->name, wanted, strerror(-err));
	else if (got != wanted) {
		pr_err("renderD%u: %s %u gets the number %u", file->minor, numbers->name, wanted, got);
		err = -EPROTO;
	}
	return err;
}

/* @items: @nr of @size bytes each, which begin with their number, ascending. */
static int make_numbers(const struct share_task *task, const struct share_file *file, int fd,
			const struct numbers *numbers, const void *items, size_t nr, size_t size)
{
	uint32_t next = 1, wanted;
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		const void *item = (const char *)items + i * size;

		memcpy(&wanted, item, sizeof(wanted));
		for (; !err && next < wanted; next++)
			err = make_number(task, file, fd, numbers, NULL, next);
		if (!err)
			err = make_number(task, file, fd, numbers, item, next++);
	}
	next = 1;
	for (size_t i = 0; !err && i < nr; i++, next++) {
		memcpy(&wanted, (const char *)items + i * size, sizeof(wanted));
		for (; !err && next < wanted; next++)
			err = numbers->drop(fd, next);
	}
	return err;
}

static int fill_file(const struct share_task *task, const struct share_file *file)
{
	const struct render_objects *objects = &file->objects;
	_cleanup_close_ int fd = criu_kept_file(file->kept);
	int err = fd < 0 ? fd : 0;

	if (!err)
		err = make_numbers(task, file, fd, &handle_numbers, objects->handles, objects->nr_handles,
				   sizeof(*objects->handles));
	if (!err)
		err = make_numbers(task, file, fd, &syncobj_numbers, objects->syncobjs, objects->nr_syncobjs,
				   sizeof(*objects->syncobjs));
	for (size_t i = 0; !err && i < objects->nr_mappings; i++) {
		const struct gem_mapping *mapping = &objects->mappings[i];

		err = gem_map(fd, mapping);
		if (err)
			pr_err("renderD%u: cannot map handle %u at %#" PRIx64 " again: %s", file->minor, mapping->handle,
			       mapping->va, strerror(-err));
	}
	return err;
}

/* ---- offsets of what is not owned ---- */

static int find_offset(const struct share_task *task, const struct share_gpu *gpu, int fd, uint32_t buffer, uint64_t *ret)
{
	_cleanup_close_ int dmabuf = share_table_get(task->table, buffer);
	uint32_t handle;
	int err = dmabuf < 0 ? dmabuf : gem_import(fd, dmabuf, &handle);

	if (dmabuf < 0)
		return err;
	if (!err) {
		err = gem_offset(fd, handle, ret);
		gem_close(fd, handle);
	}
	/* A buffer that is not for the CPU is mapped nowhere. */
	if (err == -EPERM)
		err = 0;
	if (err)
		pr_err("gpu %#x: cannot ask for the file offset of shared buffer %u: %s", gpu->user_id, buffer,
		       strerror(-err));
	return err;
}

static int compare_offsets(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* @mapped: the old offsets of all mappings, sorted. The dump saves none that does not begin where its buffer does. */
static int find_offsets_on(const struct share_task *task, const struct share_gpu *gpu, const uint64_t *mapped,
			   struct kfd_state *state)
{
	_cleanup_close_ int fd = -1;
	int err = 0;

	for (size_t i = 0; !err && i < state->nr_bos; i++) {
		struct bo *bo = &state->bos[i];

		if (bo->gpu_id != gpu->user_id || !bo->share.buffer || kfd_state_owns(state, i) ||
		    !bsearch(&bo->offset, mapped, task->nr_vmas, sizeof(*mapped), compare_offsets))
			continue;
		if (fd < 0)
			fd = share_open_scratch(gpu);
		err = fd < 0 ? fd : find_offset(task, gpu, fd, bo->share.buffer, &bo->restored_offset);
	}
	return err;
}

static int find_offsets(const struct share_task *task, struct kfd_state *state)
{
	_cleanup_free_ uint64_t *mapped = calloc(task->nr_vmas + 1, sizeof(*mapped));
	int err = mapped ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < task->nr_vmas; i++)
		mapped[i] = task->vmas[i].offset;
	if (!err)
		qsort(mapped, task->nr_vmas, sizeof(*mapped), compare_offsets);
	for (size_t i = 0; !err && i < task->nr_gpus; i++)
		err = find_offsets_on(task, &task->gpus[i], mapped, state);
	return err;
}

int share_attach(struct share_task *task, int kfd, struct kfd_state *state)
{
	bool shares = kfd_state_shares(state);
	int err = shares ? import_bos(task, kfd, state) : 0;

	task->attached = true;
	for (size_t i = 0; !err && i < task->nr_files; i++)
		err = fill_file(task, &task->files[i]);
	if (!err && shares)
		err = find_offsets(task, state);
	if (!err)
		share_table_attached(task->table, task->nr_files);
	return err;
}
