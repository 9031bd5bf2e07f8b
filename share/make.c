// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first step of a restore with shared buffers: everything that the process owns is made and exported.
 *
 * The KFD numbers its BOs by GPU, the lowest free number first. RESTORE gives any number: with small BOs in the gaps,
 * the numbers that are left are exactly those of the imports, which come later in ascending order.
 *
 * Objects of render nodes are made in a file that is closed again: they live by their dma-bufs until the files of the
 * task have handles of them, whose numbers do not matter then.
 */
#define _GNU_SOURCE
#include <inttypes.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "share/table.h"

/* ---- numbers of the KFD ---- */

/* From the highest number of each GPU down: the gaps below its last import. */
static int find_placeholders(struct share_task *task, const struct kfd_state *state)
{
	_cleanup_free_ struct bo_number *numbers = NULL;
	bool has_import = false;
	int err = records_numbers(state, &numbers);

	if (err)
		return fail(err == -EPROTO ? -EBADMSG : err, "the numbers of the buffers of pid %u cannot be read: %m", state->pid);
	for (size_t i = state->nr_records; i-- > 0;) {
		uint64_t handle = numbers[i].handle, zero = handle & ~(uint64_t)UINT32_MAX;
		bool is_lowest = !i || numbers[i - 1].handle < zero;
		uint64_t from = is_lowest ? zero : numbers[i - 1].handle + 1;

		if (from > handle || (uint32_t)handle > IMAGE_MAX_NUMBER)
			return fail(-EBADMSG, "pid %u: the number %u of a buffer of gpu %#x is there twice, or too large",
				    state->pid, (uint32_t)handle, (uint32_t)(handle >> 32));
		has_import |= state->bos[numbers[i].bo].share.kind == KFD_BO_IMPORT;
		for (; has_import && from < handle; from++) {
			struct placeholder placeholder = { .gpu_id = (uint32_t)(from >> 32), .handle = (uint32_t)from };

			if (array_add(task->placeholders, task->nr_placeholders, placeholder))
				return -ENOMEM;
		}
		has_import &= !is_lowest;
	}
	return 0;
}

/* ---- BOs of the KFD ---- */

static int make_bos(struct share_task *task, int kfd, struct kfd_state *state)
{
	_cleanup_free_ bool *keep = calloc((size_t)state->nr_bos + 1, sizeof(*keep));
	struct kfd_state selection = { 0 };
	int err = keep ? find_placeholders(task, state) : -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; i < state->nr_records; i++)
		keep[i] = state->bos[i].share.kind == KFD_BO_OWN;
	err = records_select(state, keep, task->placeholders, task->nr_placeholders, &selection);
	if (err == -EPROTO)
		fail(err, "the kernel's state of pid %u is not understood", state->pid);
	if (!err)
		err = driver_restore(kfd, &selection);
	if (!err)
		records_take_results(state, keep, &selection);
	records_selection_done(&selection);
	return err;
}

/* ---- objects of render nodes ---- */

/* What the process owns and others name: the object, if it is not of the KFD, and its metadata. No message. */
static int make_shared(int fd, struct bo *bo)
{
	const struct kfd_share *share = &bo->share;
	const struct gem_info info = {
		.size = bo->size, .domains = share->domains, .flags = share->flags, .alignment = share->alignment,
	};
	bool is_kfds = share->kind != KFD_BO_GEM;
	uint32_t handle;
	int dmabuf, err = is_kfds ? gem_import(fd, bo->dmabuf_fd, &handle) : gem_create(fd, &info, &handle);

	if (!err && !is_kfds) {
		dmabuf = gem_export(fd, handle, share->read_only);
		if (dmabuf < 0)
			return dmabuf;
		bo->dmabuf_fd = dmabuf;
		err = gem_offset(fd, handle, &bo->restored_offset);
		err = err == -EPERM ? 0 : err; /* a buffer that is not for the CPU is mapped nowhere */
	}
	if (!err && (share->metadata_size || share->tiling))
		err = gem_set_metadata(fd, handle, share);
	return err ? err : gem_close(fd, handle);
}

static int make_and_export(struct share_task *task, struct kfd_state *state)
{
	struct share_batch batch = { 0 };
	int err = 0;

	for (const struct gpu *gpu = task->gpus; gpu < task->gpus + task->nr_gpus; gpu++) {
		_cleanup_close_ int fd = -1; /* of its render node, opened with the first buffer there */

		for (size_t i = 0; !err && i < state->nr_bos; i++) {
			struct bo *bo = &state->bos[i];

			if (bo->gpu_id != gpu->user_id || !bo->share.buffer || !kfd_state_owns(state, i))
				continue;
			if (fd < 0)
				fd = drm_open_minor(gpu->minor);
			err = fd < 0 ? fail(fd, "gpu %#x: cannot open renderD%u: %m", bo->gpu_id, gpu->minor) : make_shared(fd, bo);
			if (err)
				return fail(err, "gpu %#x: cannot make buffer %u of %" PRIu64 " bytes: %m", bo->gpu_id,
					    bo->share.buffer, bo->size);
			err = share_batch_add(&batch, task->table, bo->share.buffer, bo->dmabuf_fd);
		}
	}
	return err ? err : share_batch_export(&batch, task->table);
}

int share_make(struct share_task *task, int kfd)
{
	struct kfd_state *state = &task->image->state;
	int err = share_table_begin(task->table, task->image->nr_sharers);
	bool shares = kfd_state_shares(state);

	if (!err && kfd >= 0)
		err = shares ? make_bos(task, kfd, state) : driver_restore(kfd, state);
	if (!err && shares)
		err = make_and_export(task, state);
	if (err)
		return err;
	atomic_fetch_add(&task->table->nr_exported, 1);
	return 0;
}
