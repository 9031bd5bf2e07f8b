// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens in a restored task. criu restores files and mappings there, which is where the kernel wants RESTORE.
 *
 * The first file chooses the task's GPUs, whichever it is. The one whose image has the state restores it and hands its
 * buffer data over to criu's main process; the last one attaches what the task shares.
 *
 * Device files that later hooks need are in criu's fd store: they take no number of the task's own fd table. Each
 * device mapping has a file id of its own in criu's images, so criu takes and closes the fd that UPDATE_VMA_MAP hands
 * it for each of them.
 */
#define _GNU_SOURCE
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/internal.h"
#include "image/image.h"
#include "suspend/suspend.h"

void restored_task_done(struct restored_task *task)
{
	gpus_done(&task->gpus);
	share_task_done(&task->share);
	vma_bos_done(&task->bos);
	free(task->queues);
	gpu_process_free(task->image);
}

/* -ENOENT means that the file or mapping is not ours, which is decided when there is no image of it. */
static int no_enoent(int err)
{
	return err == -ENOENT ? -EIO : err;
}

/* ---- GPUs ---- */

/* @state: of the task; NULL when this file does not have it. */
static int setup_gpus(struct restored_task *task, const struct topology *saved, const struct kfd_state *state)
{
	const struct restore *restore = task->restore;
	int err = settings_check(restore->settings);
	size_t nr = task->gpus.nr;

	if (err)
		return err;
	err = gpus_setup(&task->gpus, restore, saved, state);
	for (; nr < task->gpus.nr; nr++) {
		const struct gpu *gpu = &task->gpus.list[nr];

		err = err ? err : shared_note_gpu(restore->shared, gpu->minor, gpu->store_id);
	}
	return err;
}

static int open_kfd(struct restored_task *task)
{
	_cleanup_free_ uint32_t *minors = gpus_minors(&task->gpus);

	return minors ? kfd_open_for(minors, task->gpus.nr, task->gpus.nr_visible, &task->keeper.hooks) : -ENOMEM;
}

/* All files of /dev/kfd of a task are alike. Takes @fd; returns one with the flags, or -errno. */
static int with_flags(int fd, int flags)
{
	int err;

	if (fd < 0)
		return fd;
	if ((flags & O_ACCMODE) != O_RDWR) {
		close(fd);
		return kfd_open_as(flags);
	}
	err = device_set_status(fd, flags);
	if (!err)
		return fd;
	close(fd);
	return fail(err, "/dev/kfd cannot be opened with flags %#x: %m", flags);
}

/* ---- before the state is restored ---- */

/* Chooses the GPUs, if no file has done so before, and refuses what would not go on. */
static int prepare_state(struct restored_task *task)
{
	const struct restore *restore = task->restore;
	const struct kfd_state *state = &task->image->state;
	int err;

	/* criu chooses the task that restores a file: of those that have it, the one with the lowest pid. */
	if (!task->image->no_kfd && state->pid != (uint32_t)getpid())
		return fail(-EBADMSG, "the GPU state belongs to pid %u, and criu restores it in pid %d, which shares the file",
			    state->pid, getpid());
	restore->shared->choices.keeps_ids |= kfd_image_keeps_ids(task->image);
	err = setup_gpus(task, task->image->nodes, state);
	/* A render node that came before did not say how much is needed. */
	if (!err)
		err = gpus_check_room(&task->gpus, restore, state);
	if (err)
		return err;
	/* To the driver, pages that are still to come are pages that are not there. */
	if (task->gpus.nr && restore->shared->is_lazy)
		return fail(-EOPNOTSUPP, "a process with an AMD GPU cannot be restored with --lazy-pages: the driver does not "
			    "wait for memory that comes later; restore without it");
	for (size_t i = 0; !err && i < task->gpus.nr; i++)
		err = precheck_ids(restore->settings, task->image, task->gpus.list[i].user_id, task->gpus.list[i].actual_id);
	if (err)
		return err;
	task->share.gpus = task->gpus.list;
	task->share.nr_gpus = task->gpus.nr;
	task->share.image = task->image;
	return vma_bos_sort(state, &task->bos);
}

/* For what another plugin saved, or this one when told to save it all the same. */
static int complete_stacks(const struct restored_task *task, struct kfd_state *state)
{
	int nr_lost = stacks_add(state, task->image->nodes, &task->restore->driver, true);

	if (nr_lost <= 0)
		return nr_lost;
	if (task->restore->settings->flag[SETTING_RESTORABLE_CHECK])
		return fail(-EBADMSG, "pid %u: %d queues were stopped in kernels whose control stacks are not in the "
			    "image: these kernels are lost (KFD_RESTORABLE_CHECK=0 restores the rest)", state->pid,
			    nr_lost);
	pr_warn("pid %u: the kernels in which %d queues were stopped are lost\n", state->pid, nr_lost);
	return 0;
}

/* The records of queues and events become what the local driver takes. */
static int prepare_records(struct restored_task *task, struct kfd_state *state)
{
	const struct topology *machine = task->restore->machine;
	int err;

	/* What cannot be read is refused later. */
	if (task->restore->rules.wants_event_page && state->is_known && !state->has_event_page && state->nr_signals)
		return fail(-EOPNOTSUPP, "pid %u has %u signal events in a page that the kernel had made by itself, and this kernel "
			    "(Linux 7.3 and later) makes none: restore it on an earlier one", state->pid, state->nr_signals);
	err = mes_list(state, machine, task->restore->rules.maps_by_user_id, &task->queues, &task->nr_queues);
	if (err)
		return err;
	mes_cut(state, machine);
	err = limits_check_harm(state, machine, &task->restore->driver);
	if (err)
		return err;
	err = complete_stacks(task, state);
	if (err)
		return err;
	fold_queues(state, machine);
	return placeholders_find(state, machine, &task->restore->driver);
}

/* ---- the state ---- */

static int restore_state(struct restored_task *task, int kfd)
{
	struct kfd_state *state = &task->image->state;
	int err = kfd >= 0 ? prepare_records(task, state) : 0;

	if (err)
		return err;
	err = shared_add_task(task->restore->shared, kfd >= 0, state, task->queues, task->nr_queues);
	if (err)
		return err;
	err = kfd >= 0 ? runtime_enable(kfd, state) : 0;
	if (err)
		return err;
	return task->image->nr_sharers ? share_make(&task->share, kfd) : driver_restore(kfd, state);
}

/*
 * Once: before the first device mapping, or with the state where there is none. These are the last hooks whose failure makes criu
 * undo the restore. Only where the images have an established TCP connection.
 */
static int await_data(struct restored_task *task)
{
	if (!task->image || task->awaited)
		return 0;
	task->awaited = true;
	return pages_await(task->restore->filling);
}

/* Takes @image. Render-node fds for the kernel are open only as long as the ioctl runs. */
static int restore_image(struct restored_task *task, struct gpu_process *image)
{
	struct kfd_state *state = &image->state;
	_cleanup_close_ int kfd = -1;
	int err;

	task->image = image;
	err = suspend_restore_check(task->restore->suspended, image);
	if (!err)
		err = prepare_state(task);
	if (!err && !image->no_kfd) {
		kfd = open_kfd(task);
		err = kfd < 0 ? kfd : 0;
	}
	if (!err)
		err = gpus_open_devices(&task->gpus, state);
	if (err)
		return err;
	err = restore_state(task, kfd);
	gpus_close_devices(state);
	if (err)
		return err;
	image->minors = gpus_minors(&task->gpus);
	err = image->minors ? pages_hand_over(task->restore->filling, image) : -ENOMEM;
	kfd_close_dmabufs(state);
	if (!err && !image->nr_vmas)
		err = await_data(task);
	if (!err && kfd >= 0) {
		task->kfd_store_id = criu_keep_files(&kfd, 1);
		err = task->kfd_store_id < 0 ? task->kfd_store_id : 0;
	}
	if (err)
		return err;
	pr_info("GPU state of pid %u restored: %zu GPUs, %u %s, %u objects\n", state->pid, task->gpus.nr,
		state->nr_bos, image->no_kfd ? "buffers of render nodes" : "BOs", state->nr_objects);
	return 0;
}

/* ---- files of render nodes ---- */

static int open_render_node(struct restored_task *task, struct render_image *image)
{
	struct render_objects *objects = &image->objects;
	_cleanup_close_ int fd = -1;
	struct gpu *gpu;
	bool is_kfds;
	int store_id, err = image->nodes ? setup_gpus(task, image->nodes, NULL) : 0;

	if (err)
		return err;
	gpu = gpus_by_user_id(&task->gpus, image->gpu_id);
	if (!gpu)
		return fail(-EBADMSG, "a render node of gpu %#x comes before the task's /dev/kfd or without it",
			    image->gpu_id);
	/* Where it is not known, the first file is the one that the KFD works with. */
	is_kfds = !image->without_kfd_vm && !gpu->kfds_file_is_given;
	fd = is_kfds ? criu_kept_file(gpu->store_id) : drm_open_minor_as(gpu->minor, image->flags);
	gpu->kfds_file_is_given |= is_kfds;
	if (fd < 0)
		return fd;
	err = device_set_status(fd, image->flags);
	if (err)
		return fail(err, "renderD%u cannot be opened with flags %#x: %m", gpu->minor, image->flags);
	/* What it has to get. */
	if (objects->nr_handles || objects->nr_syncobjs) {
		store_id = is_kfds ? gpu->store_id : criu_keep_files(&fd, 1);
		err = store_id < 0 ? store_id : share_add_file(&task->share, store_id, gpu->minor, objects);
	}
	return err ? err : steal_fd(&fd);
}

static int render_file(struct restored_task *task, int id)
{
	struct render_image *image = NULL;
	int r = render_image_read(id, &image);

	if (r)
		return r;
	r = no_enoent(open_render_node(task, image));
	render_image_free(image);
	return r;
}

/* ---- files of /dev/kfd, and others whose image has a state ---- */

/* It may come before the file that has the state, and then decides what the kernel shows the process. */
static int extra_kfd_file(struct restored_task *task, const struct gpu_process *image)
{
	int fd, err = topology_count_gpus(image->nodes) ? setup_gpus(task, image->nodes, NULL) : 0;

	if (err)
		return err;
	fd = task->gpus.nr && task->kfd_store_id < 0 ? open_kfd(task) : kfd_open();
	return with_flags(fd, image->flags);
}

/* The file that has the state, which is there. */
static int file_of_state(struct restored_task *task)
{
	int fd;

	if (!task->image->no_kfd)
		return no_enoent(with_flags(criu_kept_file(task->kfd_store_id), task->image->flags));
	fd = render_file(task, task->image->id);
	if (fd != -ENOENT)
		return fd;
	return fail(-EBADMSG, "image amdgpu-renderD-%d.img is missing: it is of a file of pid %u", task->image->id,
		    task->image->state.pid);
}

static int kfd_file(struct restored_task *task, int id)
{
	struct gpu_process *image = NULL;
	int r = task->image && id == task->image->id ? 0 : kfd_image_read(id, &image);

	if (r)
		return r;
	if (!image)
		return file_of_state(task);
	if (image->extra_file) {
		r = no_enoent(extra_kfd_file(task, image));
		gpu_process_free(image);
		return r;
	}
	if (task->image) {
		gpu_process_free(image);
		return fail(-EBADMSG, "the task has two images of the state of its GPUs");
	}
	r = no_enoent(restore_image(task, image));
	return r ? r : file_of_state(task);
}

/* ---- dma-bufs ---- */

/*
 * A dma-buf may have a lower number than the file that brings the state of its task: others wait for that task's
 * buffers while it would wait for theirs, or for its own.
 */
static int restore_image_before_its_file(struct restored_task *task)
{
	int err = 0, id = task->image || task->looked_for_image ? -1 : image_next(IMAGE_KFD, -1);

	task->looked_for_image = true;
	for (; !err && !task->image && id >= 0; id = image_next(IMAGE_KFD, id)) {
		struct gpu_process *image = NULL;

		err = kfd_image_read(id, &image);
		if (!err && !image->extra_file && image->state.pid == (uint32_t)getpid())
			err = restore_image(task, image);
		else
			gpu_process_free(image);
	}
	return err;
}

static int dmabuf_file(struct restored_task *task, int id)
{
	struct dmabuf_image image;
	int err = dmabuf_image_read(id, &image);

	if (err)
		return err;
	err = restore_image_before_its_file(task);
	return no_enoent(err ? err : share_open_dmabuf(task->restore->buffers, &image));
}

/* ---- all files ---- */

/* Once, when all files of the task are there, or before its first mapping. */
static int attach(struct restored_task *task)
{
	_cleanup_close_ int kfd = -1;

	if (!task->image || !task->image->nr_sharers || task->share.attached)
		return 0;
	if (!task->image->no_kfd) {
		kfd = criu_kept_file(task->kfd_store_id);
		if (kfd < 0)
			return kfd;
	}
	return share_attach(&task->share, kfd);
}

/* Which image a file has shows by trying: an fd; -ENOENT where there is none of this kind; -errno. */
static const struct file_kind {
	int (*restore)(struct restored_task *task, int id);
	bool is_device;
} file_kinds[] = {
	{ kfd_file, true },
	{ render_file, true },
	{ dmabuf_file, false },
};

int restore_file(struct restore *restore, int id)
{
	struct restored_task *task = &restore->task;
	const struct file_kind *kind = file_kinds;
	int err = 0, fd = kind->restore(task, id);

	while (fd == -ENOENT && ++kind < file_kinds + ARRAY_SIZE(file_kinds))
		fd = kind->restore(task, id);
	if (fd == -ENOENT)
		return fd;
	if (fd >= 0 && kind->is_device && ++task->nr_files && task->image && task->nr_files == task->image->nr_files)
		err = no_enoent(attach(task));
	if (fd >= 0 && !err)
		return fd;
	share_table_fail(restore->buffers);
	if (fd < 0)
		return fd;
	close(fd);
	return err;
}

/* ---- mappings ---- */

int restore_vma(struct restore *restore, const char *path, uint64_t start, uint64_t offset, uint64_t *ret_offset,
		int *ret_fd)
{
	struct restored_task *task = &restore->task;
	struct device_vma vma;
	int err;

	if (!vma_find(task, path, start, offset, &vma))
		return -ENOENT;
	err = attach(task);
	if (!err)
		err = await_data(task);
	return no_enoent(err ? err : vma_restore(task, path, &vma, ret_offset, ret_fd));
}
