// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restore, in criu's main process: what is read and made before there are tasks, the buffer data, and RESUME when all
 * tasks are there.
 */
#include "amdgpu_plugin_util.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/internal.h"
#include "suspend/suspend.h"

static int restore_init(struct restore *restore, bool certain)
{
	int err;

	err = criu_store_begin();
	restore->shared = shared_new();
	restore->mounted = mounted_read();
	restore->buffers = share_table_new();
	if (err || !restore->shared || !restore->buffers)
		return -ENOMEM;
	restore->task.share.table = restore->buffers;
	shared_keeper_init(&restore->task.keeper, restore->shared);
	/*
	 * The kernel is asked here, where what the question leaves behind does no harm, and where there is no task yet that
	 * would have to wait until the driver opens /dev/kfd.
	 */
	restore->resume_fd = certain ? kfd_open() : -1;
	if (certain && restore->resume_fd < 0)
		return restore->resume_fd;
	restore->rules = kfd_ask_rules(restore->resume_fd);
	driver_ask_release(DRIVER_VERSION_FILE, &restore->driver);
	/* Not an error yet: without an inventory there may be no GPU process to restore. */
	restore->machine_error = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &restore->machine);
	fail_log();
	err = suspend_restore_read(&restore->suspended);
	if (err || restore->machine_error)
		return err;
	err = precheck_images(restore->machine, restore->settings, restore->suspended, restore->shared, certain,
			      &restore->largest);
	if (err)
		return err;
	restore->vma_fds_stay_open = criu_leaves_vma_fds_open();
	/* Where connections are unlocked before all is resumed, tasks wait: a damaged image would be found too late to try again. */
	restore->filling = pages_filling_new(restore->settings, topology_count_gpus(restore->machine),
					      criu_running_hooks() > CRIU_HOOK_POST_FORKING && criu_restores_connections());
	return restore->filling ? 0 : -ENOMEM;
}

struct restore *restore_new(const struct settings *settings, bool certain)
{
	struct restore *restore = calloc(1, sizeof(*restore));

	if (!restore)
		return NULL;
	precheck_wait(certain);
	*restore = (struct restore){
		.settings = settings,
		.task = { .restore = restore, .kfd_store_id = -1 },
		.resume_fd = -1,
	};
	if (!restore_init(restore, certain))
		return restore;
	restore_free(restore);
	return NULL;
}

void restore_free(struct restore *restore)
{
	if (!restore)
		return;
	pages_filling_free(restore->filling);
	restored_task_done(&restore->task);
	topology_free(restore->machine);
	topology_free(restore->largest);
	mounted_free(restore->mounted);
	share_table_free(restore->buffers);
	suspend_restore_free(restore->suspended);
	shared_free(restore->shared);
	criu_store_end();
	if (restore->resume_fd >= 0)
		close(restore->resume_fd);
	free(restore);
}

void restore_forked(struct restore *restore)
{
	if (restore->filling)
		pages_filling_begin(restore->filling);
}

/* ---- resume ---- */

/* Before any process runs, since they may share buffers; once. */
static int finish_restore(struct restore *restore)
{
	double began;
	int err;

	if (restore->finished)
		return 0;
	err = share_table_check(restore->buffers);
	/* All tasks stand before their first instruction; without criu they would go on, so they die with it. */
	if (!err)
		err = tasks_end_with_tracer();
	began = monotonic_seconds();
	if (!err)
		err = pages_filling_end(restore->filling);
	restore->waited_seconds = monotonic_seconds() - began;
	if (!err)
		err = shared_check_losses(restore->shared);
	restore->finished = !err;
	return err;
}

static int let_queues_run(struct restore *restore, pid_t pid, const struct shared_task *task)
{
	const struct shared *shared = restore->shared;
	int err = 0;

	/* A page that tasks have in common is copied when the driver takes it; some drivers give up then. */
	if (task->nr_ranges && !criu_restores_one_task())
		err = memory_unshare(pid, &shared->ranges[task->first_range], task->nr_ranges);
	if (err)
		pr_warn("pid %d: not all pages of its SVM ranges could be written (%s): its queues cannot run if one is "
			"still shared with another process\n",
			pid, strerror(-err));
	if (restore->resume_fd < 0)
		restore->resume_fd = kfd_open();
	err = restore->resume_fd < 0 ? restore->resume_fd : suspend_restore_stop(restore->suspended, task->pid, pid);
	if (!err)
		err = kfd_resume(restore->resume_fd, pid);
	if (err || !task->nr_queues)
		return err;
	/* A task that is in the middle of that must not run on if criu dies. */
	err = tasks_end_with_tracer();
	return err ? err : mes_recreate(restore->resume_fd, pid, &shared->queues[task->first_queue], task->nr_queues);
}

/*
 * Without an inventory this is asked of processes that have nothing to do with GPUs. They must not reach the kernel:
 * for a process that has the KFD open and no address space on a GPU, RESUME follows a NULL pointer.
 */
int restore_resume(struct restore *restore, pid_t pid)
{
	pid_t own_pid = task_own_pid(pid);
	const struct shared_task *task = shared_find_task(restore->shared, own_pid);
	int err = 0;

	if (!own_pid && (restore->shared->nr_tasks || suspend_restore_has(restore->suspended, own_pid)))
		return fail(-EIO, "pid %d: cannot read its NSpid in /proc, by which it is known whether it has GPU state", pid);
	if (!task && !suspend_restore_has(restore->suspended, own_pid))
		return -ESRCH;
	if (task)
		err = finish_restore(restore);
	if (!err && task && task->has_kfd)
		err = let_queues_run(restore, pid, task);
	/* Also for one that is suspended and has no state on GPUs. */
	if (!err)
		err = suspend_restore_finish(restore->suspended, own_pid, pid, restore->machine);
	if (!err && task && ++restore->nr_resumed >= restore->shared->nr_tasks) {
		pages_log_tally(pages_filling_tally(restore->filling), "restored", restore->nr_resumed, "tasks waited",
				restore->waited_seconds);
		/* What criu keeps would stay until it ends: claims, and memory that the tasks free. */
		err = criu_let_go();
	}
	/* That would say that it has no GPU state. */
	return err == -ESRCH ? -EIO : err;
}
