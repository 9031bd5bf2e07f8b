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
	free(task->placeholders);
	*task = (struct share_task){ 0 };
}

int share_add_file(struct share_task *task, int store_id, uint32_t minor, struct render_objects *objects)
{
	if (array_add(task->files, task->nr_files, (struct share_file){ store_id, minor, *objects }))
		return -ENOMEM;
	*objects = (struct render_objects){ 0 };
	atomic_fetch_add(&task->table->nr_files, 1);
	return 0;
}

int share_open_dmabuf(struct share_table *table, const struct dmabuf_image *image)
{
	int fd, err = share_table_begin(table, image->nr_sharers);

	fd = err ? err : share_table_get(table, image->buffer);
	if (fd < 0 || !image->name[0] || !ioctl(fd, DMA_BUF_SET_NAME_B, (uint64_t)(uintptr_t)image->name))
		return fd;
	err = -errno;
	close(fd);
	return fail(err, "cannot give the dma-buf of buffer %u its name \"%s\": %m", image->buffer, image->name);
}

/* ---- imports into the KFD ---- */

/* In the order of the numbers that they had and have to get; then the placeholders are freed. */
static int import_bos(struct share_task *task, int kfd)
{
	const struct kfd_state *state = &task->image->state;
	_cleanup_(share_open_done) struct share_open open = { 0 };
	_cleanup_free_ struct bo_number *numbers = NULL;
	int err = records_numbers(state, &numbers);

	for (size_t i = 0; !err && i < state->nr_records; i++) {
		const struct bo *bo = &state->bos[numbers[i].bo];
		struct bo_record record;
		uint64_t handle = 0;
		int dmabuf;

		if (bo->share.kind != KFD_BO_IMPORT)
			continue;
		dmabuf = share_table_borrow(task->table, &open, bo->share.buffer);
		if (dmabuf < 0)
			return dmabuf;
		err = records_bo(state, numbers[i].bo, &record);
		if (!err)
			err = kfd_import_dmabuf(kfd, bo->gpu_id, bo->addr, dmabuf, &handle);
		if (!err && handle != numbers[i].handle)
			return fail(-EPROTO, "gpu %#x: shared buffer %u gets the handle %#" PRIx64 " instead of %#" PRIx64,
				    bo->gpu_id, bo->share.buffer, handle, numbers[i].handle);
		if (!err)
			err = kfd_map(kfd, handle, record.mapped_gpus, records_nr_mapped(&record));
		if (err)
			return fail(err, "gpu %#x: cannot import shared buffer %u of %" PRIu64 " bytes: %m", bo->gpu_id,
				    bo->share.buffer, bo->size);
	}
	for (size_t i = 0; !err && i < task->nr_placeholders; i++) {
		const struct placeholder *placeholder = &task->placeholders[i];

		err = kfd_free(kfd, kfd_handle(placeholder->gpu_id, placeholder->handle));
		if (err)
			return fail(err, "gpu %#x: cannot free the number %u again: %m", placeholder->gpu_id,
				    placeholder->handle);
	}
	return err;
}

/* ---- files of render nodes ---- */

/* A file that gets its handles and syncobjs. */
struct target {
	const struct share_task *task;
	const struct share_file *file;
	int fd;
	struct share_open *open;
};

/* One kind of numbers of a file. Items begin with their number and are ascending. */
struct numbers {
	const char *name;
	size_t item_bytes;
	int (*make)(const struct target *target, const void *item, uint32_t *ret); /* NULL: any, for a gap */
	int (*drop)(int fd, uint32_t number);
};

static int make_handle(const struct target *target, const void *item, uint32_t *ret)
{
	const struct gem_handle *handle = item;
	int dmabuf;

	if (!handle)
		return gem_create_page(target->fd, ret);
	dmabuf = share_table_borrow(target->task->table, target->open, handle->buffer);
	return dmabuf < 0 ? dmabuf : gem_import(target->fd, dmabuf, ret);
}

static int make_syncobj(const struct target *target, const void *item, uint32_t *ret)
{
	return gem_make_syncobj(target->fd, item ? item : &(struct render_syncobj){ 0 }, ret);
}

static const struct numbers handles = { "handle", sizeof(struct gem_handle), make_handle, gem_close };
static const struct numbers syncobjs = { "syncobj", sizeof(struct render_syncobj), make_syncobj, gem_drop_syncobj };

/* Makes @items and fills the gaps, which are dropped when all are there. */
static int make_numbers(const struct target *target, const struct numbers *numbers, const void *items, size_t nr)
{
	_cleanup_free_ uint32_t *gaps = NULL;
	size_t nr_gaps = 0;
	uint32_t wanted, got = 0;
	int err = 0;

	for (uint32_t number = 1; nr; number++) {
		memcpy(&wanted, items, sizeof(wanted));
		err = numbers->make(target, number < wanted ? NULL : items, &got);
		if (err)
			return fail(err, "renderD%u: cannot make %s %u: %m", target->file->minor, numbers->name, number);
		if (got != number)
			return fail(-EPROTO, "renderD%u: %s %u gets the number %u", target->file->minor, numbers->name, number, got);
		if (number < wanted) {
			err = array_add(gaps, nr_gaps, number);
			if (err)
				return err;
			continue;
		}
		items = (const char *)items + numbers->item_bytes;
		nr--;
	}
	for (size_t i = 0; !err && i < nr_gaps; i++)
		err = numbers->drop(target->fd, gaps[i]);
	return err;
}

static int attach_objects(const struct share_task *task, const struct share_file *file)
{
	const struct render_objects *objects = &file->objects;
	_cleanup_close_ int fd = criu_kept_file(file->store_id);
	_cleanup_(share_open_done) struct share_open open = { 0 };
	const struct target target = { task, file, fd, &open };
	int err = fd < 0 ? fd : make_numbers(&target, &handles, objects->handles, objects->nr_handles);

	if (!err)
		err = make_numbers(&target, &syncobjs, objects->syncobjs, objects->nr_syncobjs);
	for (size_t i = 0; !err && i < objects->nr_mappings; i++) {
		const struct gem_mapping *mapping = &objects->mappings[i];

		err = gem_map(fd, mapping);
		if (err)
			return fail(err, "renderD%u: cannot map handle %u at %#" PRIx64 " again: %m", file->minor,
				    mapping->handle, mapping->va);
	}
	return err;
}

/* ---- offsets of what is not owned ---- */

/* By an empty file of each GPU's render node. The dump saves no mapping that does not begin where its buffer does. */
static int find_offsets(const struct share_task *task)
{
	const struct gpu_process *image = task->image;
	_cleanup_free_ uint64_t *mapped = calloc(image->nr_vmas + 1, sizeof(*mapped)); /* the old offsets */

	if (!mapped)
		return -ENOMEM;
	for (size_t i = 0; i < image->nr_vmas; i++)
		mapped[i] = image->vmas[i].offset;
	qsort(mapped, image->nr_vmas, sizeof(*mapped), compare_u64);
	for (const struct gpu *gpu = task->gpus; gpu < task->gpus + task->nr_gpus; gpu++) {
		_cleanup_close_ int fd = -1;

		for (size_t i = 0; i < image->state.nr_bos; i++) {
			struct bo *bo = &task->image->state.bos[i];
			_cleanup_close_ int dmabuf = -1;
			uint32_t handle;
			int err;

			if (bo->gpu_id != gpu->user_id || !bo->share.buffer || kfd_state_owns(&image->state, i) ||
			    !bsearch(&bo->offset, mapped, image->nr_vmas, sizeof(*mapped), compare_u64))
				continue;
			dmabuf = share_table_get(task->table, bo->share.buffer);
			if (dmabuf < 0)
				return dmabuf;
			if (fd < 0)
				fd = drm_open_minor(gpu->minor);
			err = fd < 0 ? fd : gem_import(fd, dmabuf, &handle);
			if (!err) {
				err = gem_offset(fd, handle, &bo->restored_offset);
				gem_close(fd, handle);
			}
			/* A buffer that is not for the CPU is mapped nowhere. */
			if (err && err != -EPERM)
				return fail(err, "gpu %#x: cannot ask for the file offset of shared buffer %u: %m", gpu->user_id,
					    bo->share.buffer);
		}
	}
	return 0;
}

int share_attach(struct share_task *task, int kfd)
{
	bool shares = kfd_state_shares(&task->image->state);
	int err = shares ? import_bos(task, kfd) : 0;

	task->attached = true;
	for (size_t i = 0; !err && i < task->nr_files; i++)
		err = attach_objects(task, &task->files[i]);
	if (!err)
		err = shares ? find_offsets(task) : 0;
	if (err)
		return err;
	atomic_fetch_add(&task->table->nr_filled, (unsigned int)task->nr_files);
	atomic_fetch_add(&task->table->nr_attached, 1);
	return 0;
}
