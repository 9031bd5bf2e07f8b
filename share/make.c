// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first step of a restore with shared buffers: everything that the process owns is made, and the others are told.
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

struct number {
	uint32_t gpu_id, handle;
	bool is_import;
};

static int compare_numbers(const void *a, const void *b)
{
	const struct number *x = a, *y = b;

	if (x->gpu_id != y->gpu_id)
		return x->gpu_id < y->gpu_id ? -1 : 1;
	return (x->handle > y->handle) - (x->handle < y->handle);
}

static int read_numbers(const struct kfd_state *state, struct number *numbers)
{
	for (size_t i = 0; i < state->nr_records; i++) {
		struct bo_record record;

		if (records_bo(state, i, &record) || record.handle > IMAGE_MAX_NUMBER) {
			pr_err("buffer %zu of pid %u has no record in the kernel's state, or one with an impossible number",
			       i, state->pid);
			return -EBADMSG;
		}
		numbers[i] = (struct number){
			.gpu_id = state->bos[i].gpu_id,
			.handle = record.handle,
			.is_import = state->bos[i].share.kind == KFD_BO_IMPORT,
		};
	}
	qsort(numbers, state->nr_records, sizeof(*numbers), compare_numbers);
	return 0;
}

static int add_filler(struct share_task *task, uint32_t gpu_id, uint32_t handle)
{
	struct filler *grown = array_grow(task->fillers, task->nr_fillers, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[task->nr_fillers++] = (struct filler){ .gpu_id = gpu_id, .handle = handle };
	task->fillers = grown;
	return 0;
}

/* Of one GPU; @nr numbers up to its last import. */
static int fill_gaps(struct share_task *task, const struct number *numbers, size_t nr)
{
	uint32_t next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		for (; !err && next < numbers[i].handle; next++)
			err = add_filler(task, numbers->gpu_id, next);
		if (!err && next > numbers[i].handle) {
			pr_err("two buffers of gpu %#x have the number %u", numbers->gpu_id, numbers[i].handle);
			return -EBADMSG;
		}
		next = numbers[i].handle + 1;
	}
	return err;
}

static int find_fillers(struct share_task *task, const struct kfd_state *state)
{
	size_t nr = state->nr_records;
	_cleanup_free_ struct number *numbers = calloc(nr + 1, sizeof(*numbers));
	int err = numbers ? read_numbers(state, numbers) : -ENOMEM;

	for (size_t i = 0, next; !err && i < nr; i = next) {
		size_t up_to = i;

		for (next = i; next < nr && numbers[next].gpu_id == numbers[i].gpu_id; next++)
			if (numbers[next].is_import)
				up_to = next + 1;
		err = fill_gaps(task, &numbers[i], up_to - i);
	}
	return err;
}

/* ---- BOs of the KFD ---- */

static int make_bos(struct share_task *task, int kfd, struct kfd_state *state)
{
	_cleanup_free_ bool *keep = calloc((size_t)state->nr_bos + 1, sizeof(*keep));
	struct kfd_state selection = { 0 };
	int err = keep ? find_fillers(task, state) : -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; i < state->nr_records; i++)
		keep[i] = state->bos[i].share.kind == KFD_BO_OWN;
	err = records_select(state, keep, task->fillers, task->nr_fillers, &selection);
	if (err == -EPROTO)
		pr_err("the kernel's state of pid %u is not understood", state->pid);
	if (!err)
		err = standin_restore(kfd, &selection);
	if (!err)
		records_take_results(state, keep, &selection);
	records_selection_done(&selection);
	return err;
}

/* ---- objects of render nodes ---- */

int share_open_scratch(const struct share_gpu *gpu)
{
	int fd = drm_open_minor(gpu->minor);

	if (fd < 0)
		pr_err("gpu %#x: cannot open renderD%u: %s", gpu->user_id, gpu->minor, strerror(-fd));
	return fd;
}

/* Opened with the first buffer of the GPU. -errno after an error line. */
static int scratch_of(const struct share_task *task, int *fds, uint32_t gpu_id)
{
	for (size_t i = 0; i < task->nr_gpus; i++) {
		if (task->gpus[i].user_id != gpu_id)
			continue;
		if (fds[i] < 0)
			fds[i] = share_open_scratch(&task->gpus[i]);
		return fds[i];
	}
	pr_err("gpu %#x of a shared buffer is not one of the process'", gpu_id);
	return -ENODEV;
}

static int make_object(int fd, struct bo *bo, uint32_t *ret_handle)
{
	const struct kfd_share *share = &bo->share;
	const struct gem_info info = {
		.size = bo->size, .domains = share->domains, .flags = share->flags, .alignment = share->alignment,
	};
	int dmabuf, err = gem_create(fd, &info, ret_handle);

	if (err)
		return err;
	dmabuf = gem_export(fd, *ret_handle, share->read_only);
	if (dmabuf < 0)
		return dmabuf;
	bo->dmabuf_fd = dmabuf;
	/* A buffer that is not for the CPU is mapped nowhere. */
	err = gem_offset(fd, *ret_handle, &bo->restored_offset);
	return err == -EPERM ? 0 : err;
}

/* What the process owns and others name: the object, if it is not of the KFD, and its metadata. */
static int make_shared(int fd, struct bo *bo)
{
	const struct kfd_share *share = &bo->share;
	uint32_t handle;
	int err;

	if (fd < 0)
		return fd;
	err = share->kind == KFD_BO_GEM ? make_object(fd, bo, &handle) :
					  gem_import(fd, bo->dmabuf_fd, &handle);
	if (!err && (share->metadata_size || share->tiling))
		err = gem_set_metadata(fd, handle, share);
	if (!err)
		err = gem_close(fd, handle);
	if (err)
		pr_err("gpu %#x: cannot make buffer %u of %" PRIu64 " bytes: %s", bo->gpu_id, share->buffer,
		       bo->size, strerror(-err));
	return err;
}

static int make_all_shared(struct share_task *task, int *fds, struct kfd_state *state)
{
	struct share_batch batch = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < state->nr_bos; i++) {
		struct bo *bo = &state->bos[i];

		if (!bo->share.buffer || !kfd_state_owns(state, i))
			continue;
		err = make_shared(scratch_of(task, fds, bo->gpu_id), bo);
		if (!err)
			err = share_batch_add(&batch, task->table, bo->share.buffer, bo->dmabuf_fd);
	}
	return err ? err : share_batch_tell(&batch, task->table);
}

static int make_and_tell(struct share_task *task, struct kfd_state *state)
{
	_cleanup_free_ int *fds = malloc((task->nr_gpus + 1) * sizeof(*fds));
	int err;

	for (size_t i = 0; fds && i <= task->nr_gpus; i++)
		fds[i] = -1;
	err = fds ? make_all_shared(task, fds, state) : -ENOMEM;
	for (size_t i = 0; fds && i < task->nr_gpus; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return err;
}

int share_make(struct share_task *task, int kfd, struct kfd_state *state)
{
	int err = share_table_begin(task->table, task->nr_sharers);
	bool shares = kfd_state_shares(state);

	if (!err && kfd >= 0)
		err = shares ? make_bos(task, kfd, state) : standin_restore(kfd, state);
	if (!err && shares)
		err = make_and_tell(task, state);
	if (!err)
		share_table_told(task->table);
	return err;
}
