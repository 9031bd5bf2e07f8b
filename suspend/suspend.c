// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a suspend: stop all processes, read their states, copy the data of all; then each process frees its
 * buffers.
 *
 * Up to the end of the copies nothing has changed in the processes. Before them calls are tried: from the first one on
 * each process stays stopped without its tracer, too (freezer.c), and if the command dies, suspend_resume() lets it
 * run. The record says what a resume restores.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "amdgpu_plugin_drm.h"
#include "share/share.h"
#include "suspend/internal.h"

/* ---- the file of /dev/kfd ---- */

/* Who runs on could use memory that is freed, or close /dev/kfd, without which a resume cannot restore it. */
static int check_sharers(const struct batch *batch, pid_t pid)
{
	_cleanup_free_ int *sharers = NULL;
	size_t nr = 0;
	int err = task_list_sharers(pid, &sharers, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (!batch_has(batch, sharers[i]))
			err = fail(-EOPNOTSUPP, "pid %d: pid %d has the same memory or the same descriptors (clone()): suspend "
				   "both (--tree, --cgroup)", pid, sharers[i]);
	return err;
}

static int find_own_kfd(const struct batch *batch, struct process *process, const struct task_files *files)
{
	struct record_head *head = &process->head;
	unsigned int nr_spaces;
	struct task_kfd kfd;
	int err = task_ask_kfd(head->pid, &kfd);

	if (err)
		return fail(err, "pid %d: cannot look for it among the KFD's processes: %m", head->pid);
	if (kfd.nr_contexts)
		return fail(-EOPNOTSUPP, "pid %d: has several contexts of the KFD, which cannot be suspended", head->pid);
	for (size_t i = 0; i < files->count && !head->report.has_kfd; i++) {
		const struct task_file *file = &files->files[i];
		int answer;

		if (file->minor || file->pid != head->pid)
			continue;
		/* The kernel answers for the process itself, and for none that has only inherited the file. */
		answer = kfd_unpause(file->fd);
		if (!answer)
			pr_warn("pid %d: its GPU queues had been left stopped by a dump that was killed\n", head->pid);
		else if (answer != -EINVAL)
			continue;
		process->gpu.file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		if (!process_has_kfd(process))
			return -errno;
		head->report.has_kfd = true;
		head->kfd_number = process->gpu.file.number = file->number;
	}
	/* What it has on GPUs lasts as long as its memory. */
	if (!head->report.has_kfd && (kfd.nr_queues || kfd.vram_bytes))
		return fail(-EOPNOTSUPP,
			    "pid %d: has %u queues and %" PRIu64 " bytes of VRAM, and no descriptor of a /dev/kfd of its own (it has "
			    "closed that, or a process with a lower pid has inherited it): its queues cannot be stopped",
			    head->pid, kfd.nr_queues, kfd.vram_bytes);
	err = head->report.has_kfd ? check_sharers(batch, head->pid) : 0;
	if (err)
		return err;
	if (!head->report.has_kfd || !kfd.vram_bytes)
		return 0;
	/* The kernel looks up each buffer in the address space of every GPU that it sees, and oopses without one. */
	nr_spaces = task_files_count_spaces(files, head->pid, kfd.pasid, batch->machine);
	if (nr_spaces >= kfd.nr_gpus)
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: sees %u GPUs and has an address space on %u: kernels crash when they are asked for "
		    "its buffers; let it see only the GPUs that it uses (device cgroup)", head->pid, kfd.nr_gpus, nr_spaces);
}

/* ---- before anything is stopped ---- */

static int check_unsuspended(pid_t pid)
{
	struct record_head head;
	int err = record_find(pid, &head);
	bool is_marked = task_find_mark(pid, -1) >= 0;

	if (!err && record_is_alive(&head) && record_check(&head))
		return -EALREADY;
	if (!err && record_is_alive(&head))
		return fail(-EALREADY, "pid %d: is %s (\"amdgpu-checkpoint resume %d\")", pid,
			    head.phase == PHASE_LOCKED ? "locked already" :
			    is_marked ? "suspended already" : "being suspended, or a suspend of it was killed", pid);
	if (!err)
		record_remove(&head);
	/* Another process has this number in another pid namespace. */
	if (err == -EXDEV)
		fail_clear();
	if (is_marked)
		return fail(-EALREADY, "pid %d: is suspended already, in another pid namespace, in a container, or by another version: resume "
					"it there", pid);
	return err == -ENOENT || err == -EXDEV ? 0 : err;
}

/* A process has one tracer: the command that traces it is alone with its record. */
static int stop_process(struct process *process, const struct suspend_target *target, const struct datadir *datadir)
{
	struct record_head *head = &process->head;
	int err = hold_begin(head->pid, true, &process->hold);

	if (!err)
		err = check_unsuspended(head->pid);
	if (!err)
		err = record_begin(head, target->id);
	if (err)
		return err;
	head->phase = PHASE_COPYING;
	head->was_stopped = hold_is_stopped(&process->hold);
	head->made_base = datadir->is_new_base;
	head->by_stop = target->by_stop;
	snprintf(head->follows, sizeof(head->follows), "%s", target->follows ? target->follows : "");
	snprintf(head->dir, sizeof(head->dir), "%s", datadir->dir);
	return record_write(process);
}

/* Processes make others until all are stopped, and these may end before they are. */
static int stop_all(struct batch *batch, const struct suspend_target *target, const struct datadir *datadir)
{
	size_t i = 0;
	int nr;

	while ((nr = batch_add(batch, target)) > 0)
		while (i < batch->nr) {
			int err = stop_process(&batch->processes[i], target, datadir);

			if (!err)
				i++;
			else if (err == -ESRCH && batch_drop_ended(batch, target, i))
				fail_clear();
			else
				return err;
		}
	return nr < 0 || batch->nr ? nr : fail(-ESRCH, "there is no process to suspend");
}

/* ---- locked processes ---- */

static int check_locked(const struct process *process, int err)
{
	const char *text = "it runs";

	if (err && err != -ENOENT)
		return err;
	if (err && !process_is_alive(process->head.pid))
		return fail(-ESRCH, "pid %d: there is no such process", process->head.pid);
	if (!err && process->has_ended)
		return fail(-ESRCH, "pid %d: has ended while it was locked", process->head.pid);
	if (!err && process->head.phase == PHASE_LOCKED)
		return 0;
	if (!err)
		text = process->head.phase == PHASE_SUSPENDED ? "it is suspended already" : "it is half way: resume it";
	return fail(-EINVAL, "pid %d: is not locked (%s)", process->head.pid, text);
}

/* All are looked at before one is touched. */
static int seize_all_locked(struct batch *batch, const struct suspend_target *target, const struct datadir *datadir)
{
	int err = batch_add(batch, target);

	if (err <= 0)
		return err ? err : fail(-ESRCH, "there is no process to checkpoint");
	err = 0;
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		err = check_locked(process, process_read_head(process));
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		struct record_head *head = &process->head;

		err = check_locked(process, process_seize(process));
		if (err)
			return err;
		process->is_locked = true;
		err = freezer_look_at_thread(batch, process);
		/* Data of an earlier checkpoint. */
		if (!err && head->dir[0])
			err = record_remove_data(process);
		head->made_base = datadir->is_new_base;
		head->since = time(NULL);
		snprintf(head->dir, sizeof(head->dir), "%s", datadir->dir);
		if (!err)
			err = record_write(process);
	}
	return err;
}

/* The state is read and judged anew: others may have imported buffers of the process meanwhile. */
static int read_locked_state(struct process *process)
{
	const struct kfd_state *then = &process->gpu.state;
	struct record_head *head = &process->head;
	struct kfd_state state = { 0 };
	uint32_t minor = 0;
	int err = resets_find(head, &minor);

	if (!err && minor)
		err = fail(-EIO, "pid %d: the driver has reset the GPU of renderD%u since it was locked: unlock it", head->pid, minor);
	if (!err)
		err = kfd_checkpoint_again(process->gpu.file.fd, head->pid, then, then->nr_records, 0, &state);
	if (err)
		return err;
	kfd_state_done(&process->gpu.state);
	process->gpu.state = state;
	free(steal_ptr(process->vmas));
	free(steal_ptr(process->handles));
	free(steal_ptr(process->mappings));
	head->nr_vmas = head->nr_handles = head->nr_mappings = 0;
	head->report = (struct suspend_report){
		.pid = head->pid,
		.has_kfd = head->report.has_kfd,
		.is_held_by_signal = head->report.is_held_by_signal,
	};
	return 0;
}

/* After a failure before anything has changed they are locked as before. */
static void stay_locked(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		if (!process->is_locked)
			continue;
		kfd_close_dmabufs(&process->gpu.state);
		if (!record_set(process, PHASE_LOCKED))
			record_remove_data(process);
	}
}

/* ---- states ---- */

static int read_states(struct batch *batch, const struct task_files *files)
{
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		uint32_t *owner = &process->gpu.state.pid;
		pid_t pid = process->head.pid;

		if (process->is_locked)
			continue;
		err = find_own_kfd(batch, process, files);
		if (err || !process_has_kfd(process))
			continue;
		/* A resume has to know the number of /dev/kfd before the queues stop. */
		err = record_write(process);
		if (!err)
			err = kfd_pause(process->gpu.file.fd, pid, &process->gpu.state);
		/* Of another process, too, the kernel stops them, where the command traces that as well. */
		if (!err && *owner != (uint32_t)task_own_pid(pid))
			err = fail(-EOPNOTSUPP, "pid %d: its /dev/kfd is that of pid %u, which has a higher pid: it cannot be "
				   "told whose queues these are (close /dev/kfd in pid %d)", pid, *owner, pid);
	}
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		if (!process_has_kfd(process))
			continue;
		err = process->is_locked ? read_locked_state(process) :
					   kfd_checkpoint(process->gpu.file.fd, process->head.pid, &process->gpu.state);
		if (!err)
			err = process_look(batch, process);
		if (!err)
			err = resets_note(process);
	}
	return err;
}

static int collect_files(const struct batch *batch, struct task_files *ret)
{
	int *pids = calloc(batch->nr + 1, sizeof(*pids));

	for (size_t i = 0; pids && i < batch->nr; i++)
		pids[i] = batch->processes[i].head.pid;
	return pids ? task_files_collect_of(pids, batch->nr, drm_is_amd, ret) : -ENOMEM;
}

/* Else suspend_resume() puts back what is left of calls. */
static bool is_unchanged(const struct process *process)
{
	return process->head.phase == PHASE_COPYING ||
	       (!process->inject.is_changed && task_find_mark(process->head.pid, -1) < 0);
}

static void release_all(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		int err = process_has_kfd(process) ? kfd_unpause(process->gpu.file.fd) : 0;

		/* -EINVAL: they run, as when nothing was stopped yet. */
		if (err && err != -EINVAL) {
			if (!process_is_ending(process->head.pid))
				pr_err("pid %d: cannot let its GPU queues run again (\"amdgpu-checkpoint resume %d\")\n",
				       process->head.pid, process->head.pid);
		} else if (process->head.start && is_unchanged(process) && freezer_release(process)) {
			record_remove(&process->head);
		}
	}
	freezer_end(batch);
}

/* ---- changes ---- */

static void close_dmabufs(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		kfd_close_dmabufs(&process->gpu.state);
}

/* A process without /dev/kfd gets only the mark, by which others know that it is suspended. */
static int free_vram(struct process *process)
{
	int err = inject_begin(&process->inject);

	if (!err)
		err = calls_mark(process);
	process->nr_bos_now = process->gpu.state.nr_records;
	if (!err)
		err = vmm_close(process);
	for (size_t i = 0; !err && i < process->gpu.state.nr_records; i++) {
		bool kept = false;

		if (process->plan[i] != BO_FREE)
			continue;
		err = calls_free(process, i, process->gpu.state.bos[i].offset, &kept);
		process->plan[i] = kept ? BO_FREE_FAILED : BO_FREE;
		process->head.report.freed_bytes += kept ? 0 : process->gpu.state.bos[i].size;
		process->head.report.kept_bytes[KEPT_BY_MAPPING] += kept ? process->gpu.state.bos[i].size : 0;
	}
	return err ? err : inject_end(&process->inject);
}

/* A process that cannot make calls is refused while nothing has changed. From here on all stay stopped. */
static int try_calls(struct batch *batch)
{
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		err = freezer_look_at_thread(batch, process);
		process->head.was_stopped = hold_is_stopped(&process->hold);
		if (!err)
			err = record_set(process, PHASE_TRYING);
	}
	if (!err)
		err = freezer_stop_for_calls(batch);
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		err = calls_try(process);
	freezer_end(batch);
	return err;
}

/* None is suspended before all are: those in the middle are resumed together. */
static int free_all(struct batch *batch)
{
	int err = freezer_stop_for_calls(batch);

	if (err) {
		freezer_end(batch);
		return err;
	}
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		err = free_vram(process);
	freezer_freeze(batch);
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		const struct record_head *head = &process->head;

		/* A process that a signal has stopped is continued by one. */
		if (head->by_stop && head->report.is_held_by_signal)
			err = fail(-EOPNOTSUPP,
				   "pid %d: a signal has stopped it, and cannot be followed: it cannot have a cgroup of its own, "
				   "without which SIGCONT would let it run without its memory",
				   head->pid);
	}
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		err = record_set(process, PHASE_SUSPENDED);
	freezer_end(batch);
	return err;
}

static int save_all(struct batch *batch, int dir)
{
	const char *name = batch->processes[0].head.dir;
	int err = datadir_check_room(name, dir, batch_data_bytes(batch));

	if (err)
		return err;
	criu_use_image_dir(dir);
	err = batch_copy(batch, name, true);
	criu_use_image_dir(-1);
	close_dmabufs(batch);
	/* No buffer is freed before the data of all are on the disk. */
	if (!err && syncfs(dir))
		err = fail(-errno, "%s: cannot be written: %m", name);
	return err;
}

static int read_and_plan(struct batch *batch, const struct task_files *files)
{
	struct share_request request = { .files = files, .machine = batch->machine };
	int err = share_begin(&request, &batch->driver);

	if (!err)
		err = read_states(batch, files);
	return err ? err : plan_all(batch, &request);
}

static int prepare(struct batch *batch, const struct suspend_target *target, const char *dir, struct suspend_times *times)
{
	_cleanup_(task_files_done) struct task_files files = { 0 };
	_cleanup_free_ uint32_t *losses = NULL;
	_cleanup_close_ int fd = -1;
	struct datadir datadir = { 0 };
	int err = datadir_choose(dir, target->id, &datadir);

	if (!err)
		err = datadir_make_run();
	if (!err)
		err = target->are_locked ? seize_all_locked(batch, target, &datadir) : stop_all(batch, target, &datadir);
	if (!err)
		err = datadir_make(&datadir, &fd);
	if (!err)
		err = collect_files(batch, &files);
	if (!err)
		err = losses_note(&files, &losses);
	if (!err)
		err = read_and_plan(batch, &files);
	if (!err && !target->are_locked)
		err = try_calls(batch);
	times->stopped = monotonic_seconds() - batch->began;
	if (!err)
		err = save_all(batch, fd);
	if (!err)
		err = losses_check(&files, losses);
	times->copied = monotonic_seconds() - batch->began;
	return err;
}

int suspend_processes(const struct suspend_target *target, const char *dir, const struct settings *settings,
		      struct suspend_result *ret)
{
	_cleanup_(batch_end) struct batch batch = batch_begin(settings);
	int err;

	alarm(target->timeout_seconds);
	suspend_clean();
	err = batch_read_machine(&batch);
	if (!err)
		err = prepare(&batch, target, dir, &ret->times);
	/* From here on memory is freed. Others may use it when a resume wants it: no time-out ends that. */
	alarm(0);
	for (struct process *process = NULL; !err && (process = batch_next(&batch, process));) {
		process->head.was_stopped &= hold_is_stopped(&process->hold);
		err = record_set(process, PHASE_CHANGING);
	}
	if (err) {
		if (target->are_locked)
			stay_locked(&batch);
		else
			release_all(&batch);
		return err;
	}
	err = free_all(&batch);
	ret->is_half = target->are_locked && err;
	ret->times.done = monotonic_seconds() - batch.began;
	return err ? err : batch_report(&batch, ret);
}

int suspend_lock(const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret)
{
	_cleanup_(batch_end) struct batch batch = batch_begin(settings);
	_cleanup_(task_files_done) struct task_files files = { 0 };
	const struct datadir nowhere = { 0 };
	int err;

	alarm(target->timeout_seconds);
	suspend_clean();
	err = batch_read_machine(&batch);
	if (!err)
		err = datadir_make_run();
	if (!err)
		err = stop_all(&batch, target, &nowhere);
	if (!err)
		err = collect_files(&batch, &files);
	if (!err)
		err = read_and_plan(&batch, &files);
	ret->times.stopped = monotonic_seconds() - batch.began;
	if (!err)
		err = try_calls(&batch);
	/* As in free_all(): none is locked before all are. */
	if (!err) {
		err = freezer_stop_for_calls(&batch);
		for (struct process *process = NULL; !err && (process = batch_next(&batch, process));)
			err = calls_end_marked(process);
		if (!err)
			freezer_freeze(&batch);
		for (struct process *process = NULL; !err && (process = batch_next(&batch, process));)
			err = record_set(process, PHASE_LOCKED);
		freezer_end(&batch);
		close_dmabufs(&batch);
	}
	alarm(0);
	if (err)
		release_all(&batch);
	ret->times.done = monotonic_seconds() - batch.began;
	return err ? err : batch_report(&batch, ret);
}
