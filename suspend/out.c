// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a suspend: stop all, ask all, copy all; then each process gives up its buffers.
 *
 * Up to the end of the copies nothing has changed in the processes. Before them calls are tried: from the first one on
 * each process is held without its tracer, too (freezer.c), and if the command dies, suspend_back() lets it run. The record
 * says what comes back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "amdgpu_plugin_drm.h"
#include "share/share.h"
#include "suspend/internal.h"

/* ---- the file of /dev/kfd ---- */

/* The kernel answers for the process itself, and for none that has only inherited the file. */
static bool is_own_kfd(const struct task_file *file, pid_t pid)
{
	int err = file->minor || file->pid != pid ? -EBADF : kfd_unpause(file->fd);

	if (!err)
		pr_warn("pid %d: its GPU queues had been left stopped by a dump that was killed\n", pid);
	return !err || err == -EINVAL;
}

/* The kernel looks up each buffer in the address space of every GPU that the process sees, and oopses without one. */
static int check_spaces(const struct cut *cut, const struct task_files *files, pid_t pid, uint32_t pasid,
			unsigned int nr_gpus)
{
	unsigned int nr = task_files_count_spaces(files, pid, pasid, cut->machine);

	if (nr >= nr_gpus)
		return 0;
	return fail(-EOPNOTSUPP,
		    "pid %d: sees %u GPUs and has an address space on %u: kernels crash when they are asked for its "
		    "buffers; let it see only the GPUs that it uses (device cgroup)",
		    pid, nr_gpus, nr);
}

static int own_kfd_find(const struct cut *cut, struct process *process, const struct task_files *files)
{
	struct record_head *head = &process->head;
	struct task_kfd kfd;
	int err = task_ask_kfd(process->head.pid, &kfd);

	if (!err && kfd.nr_contexts)
		return fail(-EOPNOTSUPP, "pid %d: has several contexts of the KFD, which cannot be suspended",
			    process->head.pid);
	for (size_t i = 0; i < files->count && !head->report.has_kfd; i++) {
		const struct task_file *file = &files->files[i];

		if (!is_own_kfd(file, process->head.pid))
			continue;
		process->gpu.file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		if (!process_has_kfd(process))
			return -errno;
		head->report.has_kfd = true;
		head->kfd_number = process->gpu.file.number = file->number;
	}
	if (head->report.has_kfd && kfd.vram_bytes)
		return check_spaces(cut, files, process->head.pid, kfd.pasid, kfd.nr_gpus);
	return 0;
}

/* ---- before anything is stopped ---- */

static const char *why_not(const struct record_head *head)
{
	if (head->phase == PHASE_LOCKED)
		return "locked already";
	return task_find_mark(head->pid, -1) >= 0 ? "suspended already" : "being suspended, or a suspend of it was killed";
}

static int check_unsuspended(pid_t pid)
{
	struct record_head head;
	int err = record_find(pid, &head);
	bool is_marked = task_find_mark(pid, -1) >= 0;

	if (!err && record_is_alive(&head))
		return fail(-EALREADY, "pid %d: is %s (\"amdgpu-checkpoint resume %d\")", pid, why_not(&head), pid);
	if (!err)
		record_remove(&head);
	/* Another process has this number in another pid namespace. */
	if (err == -EXDEV)
		fail_clear();
	if (is_marked)
		return fail(-EALREADY, "pid %d: is suspended already, in another pid namespace or container: resume it there",
			    pid);
	return err == -ENOENT || err == -EXDEV ? 0 : err;
}

static int begin_record(struct process *process, const struct suspend_target *target, const struct datadir *datadir)
{
	struct record_head *head = &process->head;
	int err = record_begin(head, target->id);

	head->phase = PHASE_COPYING;
	head->was_stopped = hold_is_stopped(&process->hold);
	head->made_base = datadir->is_new_base;
	head->by_stop = target->by_stop;
	snprintf(head->follows, sizeof(head->follows), "%s", target->follows ? target->follows : "");
	snprintf(head->dir, sizeof(head->dir), "%s", datadir->dir);
	return err ? err : record_write(process);
}

/* A process has one tracer: whoever holds it is alone with its record. */
static int stop_process(struct process *process, const struct suspend_target *target, const struct datadir *datadir)
{
	int err = hold_begin(process->head.pid, true, &process->hold);

	if (!err)
		err = check_unsuspended(process->head.pid);
	return err ? err : begin_record(process, target, datadir);
}

/* Processes make others until all are stopped, and these may end before they are. */
static int stop_all(struct cut *cut, const struct suspend_target *target, const struct datadir *datadir)
{
	size_t i = 0;
	int nr;

	while ((nr = cut_add(cut, target)) > 0)
		while (i < cut->nr) {
			int err = stop_process(&cut->processes[i], target, datadir);

			if (!err)
				i++;
			else if (err == -ESRCH && cut_drop_ended(cut, target, i))
				fail_clear();
			else
				return err;
		}
	return nr < 0 || cut->nr ? nr : fail(-ESRCH, "there is no process to suspend");
}

/* ---- those that are locked ---- */

static int check_locked(const struct process *process, int err)
{
	const char *text = "it runs";

	if (err && err != -ENOENT)
		return err;
	if (!err && process->has_ended)
		return fail(-ESRCH, "pid %d: has ended while it was locked", process->head.pid);
	if (!err && process->head.phase == PHASE_LOCKED)
		return 0;
	if (!err)
		text = process->head.phase == PHASE_SUSPENDED ? "it is suspended already" : "it is half way: resume it";
	return fail(-EINVAL, "pid %d: is not locked (%s)", process->head.pid, text);
}

/* What a checkpoint of before has left is removed. */
static int take_locked(struct cut *cut, struct process *process, const struct datadir *datadir)
{
	struct record_head *head = &process->head;
	int err = check_locked(process, process_take(process));

	if (err)
		return err;
	process->is_locked = true;
	err = freezer_look_at_thread(cut, process);
	if (!err && head->dir[0])
		err = record_remove_data(process);
	head->made_base = datadir->is_new_base;
	head->since = time(NULL);
	snprintf(head->dir, sizeof(head->dir), "%s", datadir->dir);
	return err ? err : record_write(process);
}

/* All are looked at before one is touched. */
static int take_all_locked(struct cut *cut, const struct suspend_target *target, const struct datadir *datadir)
{
	int err = cut_add(cut, target);

	if (err <= 0)
		return err ? err : fail(-ESRCH, "there is no process to checkpoint");
	err = 0;
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = check_locked(&cut->processes[i], process_find(&cut->processes[i]));
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = take_locked(cut, &cut->processes[i], datadir);
	return err;
}

/* The state that it has now, since others may have got buffers of it meanwhile. */
static int ask_locked(struct process *process)
{
	const struct kfd_state *then = &process->gpu.state;
	struct record_head *head = &process->head;
	struct kfd_state state = {
		.pid = then->pid,
		.nr_devices = then->nr_devices,
		.nr_bos = then->nr_bos,
		.nr_records = then->nr_records,
		.nr_objects = then->nr_objects,
		.priv_size = then->priv_size,
	};
	uint32_t minor = 0;
	int err = resets_find(head, &minor);

	if (!err && minor)
		err = fail(-EIO, "pid %d: the driver has reset the GPU of renderD%u since it was locked: unlock it", head->pid, minor);
	if (!err)
		err = kfd_checkpoint(process->gpu.file.fd, head->pid, &state);
	if (err)
		return err;
	process_forget_plan(process);
	process->gpu.state = state;
	return 0;
}

/* They are as they were, whatever has failed before they changed. */
static void stay_locked(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (!process->is_locked)
			continue;
		kfd_close_dmabufs(&process->gpu.state);
		if (!record_set(process, PHASE_LOCKED))
			record_remove_data(process);
	}
}

/* ---- states ---- */

/* Whoever takes the process back has to know its file before its queues stop. */
static int queues_stop(const struct cut *cut, struct process *process, const struct task_files *files)
{
	int err = own_kfd_find(cut, process, files);

	if (err || !process_has_kfd(process))
		return err;
	err = record_write(process);
	if (!err)
		err = kfd_pause(process->gpu.file.fd, process->head.pid, &process->gpu.state);
	return err;
}

static int stop_and_ask(struct cut *cut, const struct task_files *files)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++)
		if (!cut->processes[i].is_locked)
			err = queues_stop(cut, &cut->processes[i], files);
	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (!process_has_kfd(process))
			continue;
		err = process->is_locked ? ask_locked(process) :
					   kfd_checkpoint(process->gpu.file.fd, process->head.pid, &process->gpu.state);
		if (!err)
			err = process_look(cut, process);
		if (!err)
			err = resets_note(process);
	}
	return err;
}

static int cut_collect_files(const struct cut *cut, struct task_files *ret)
{
	int *pids = calloc(cut->nr + 1, sizeof(*pids));

	for (size_t i = 0; pids && i < cut->nr; i++)
		pids[i] = cut->processes[i].head.pid;
	return pids ? task_files_collect_of(pids, cut->nr, drm_is_amd, ret) : -ENOMEM;
}

/* Else suspend_back() puts back what is left of calls. */
static bool is_itself(const struct process *process)
{
	return process->head.phase == PHASE_COPYING ||
	       (!process->inject.is_changed && task_find_mark(process->head.pid, -1) < 0);
}

static void cut_let_go(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];
		int err = process_has_kfd(process) ? kfd_unpause(process->gpu.file.fd) : 0;

		/* -EINVAL: they run, as when nothing was stopped yet. */
		if (err && err != -EINVAL) {
			pr_err("pid %d: cannot let its GPU queues run again (\"amdgpu-checkpoint resume %d\")\n",
			       process->head.pid, process->head.pid);
		} else if (process->head.start && is_itself(process) && freezer_release(process)) {
			record_remove(&process->head);
		}
	}
	freezer_end(cut);
}

/* ---- changes ---- */

static void close_dmabufs(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr; i++)
		kfd_close_dmabufs(&cut->processes[i].gpu.state);
}

/* Without /dev/kfd it has only the mark, by which others know that it is suspended. */
static int vram_give_up(struct process *process)
{
	int err = inject_begin(&process->inject);

	if (!err)
		err = calls_mark(process);
	process->nr_bos_now = process->gpu.state.nr_records;
	if (!err)
		err = vmm_free(process);
	for (size_t i = 0; !err && i < process->gpu.state.nr_records; i++) {
		bool kept = false;

		if (process->goes[i] != GOES)
			continue;
		err = calls_free(process, i, process->gpu.state.bos[i].offset, &kept);
		process->goes[i] = kept ? GOES_NOT_AFTER_ALL : GOES;
		process->head.report.freed_bytes += kept ? 0 : process->gpu.state.bos[i].size;
		process->head.report.kept_bytes[KEPT_BY_MAPPING] += kept ? process->gpu.state.bos[i].size : 0;
	}
	return err ? err : inject_end(&process->inject);
}

/* Who cannot make calls is refused while nothing has changed. From here on processes stay stopped. */
static int cut_try(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		err = freezer_look_at_thread(cut, process);
		process->head.was_stopped = hold_is_stopped(&process->hold);
		if (!err)
			err = record_set(process, PHASE_TRYING);
	}
	if (!err)
		err = freezer_stop_for_calls(cut);
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = calls_try(&cut->processes[i]);
	freezer_end(cut);
	return err;
}

/* Whoever has stopped it by a signal lets it run by one. */
static int check_hold(const struct record_head *head)
{
	if (!head->by_stop || !head->report.is_held_by_signal)
		return 0;
	return fail(-EOPNOTSUPP,
		    "pid %d: a signal has stopped it, and cannot be followed: it cannot have a cgroup of its own, without which "
		    "SIGCONT would let it run without its memory",
		    head->pid);
}

/* None is suspended before all are: what is in the middle is taken back together. */
static int cut_change(struct cut *cut)
{
	int err = freezer_stop_for_calls(cut);

	if (err) {
		freezer_end(cut);
		return err;
	}
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = vram_give_up(&cut->processes[i]);
	freezer_freeze(cut);
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = check_hold(&cut->processes[i].head);
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = record_set(&cut->processes[i], PHASE_SUSPENDED);
	freezer_end(cut);
	return err;
}

/* Likewise. Nobody is locked before all are. */
static int cut_lock(struct cut *cut)
{
	int err = freezer_stop_for_calls(cut);

	for (size_t i = 0; !err && i < cut->nr; i++)
		err = calls_end_marked(&cut->processes[i]);
	if (!err)
		freezer_freeze(cut);
	for (size_t i = 0; !err && i < cut->nr; i++)
		err = record_set(&cut->processes[i], PHASE_LOCKED);
	freezer_end(cut);
	close_dmabufs(cut);
	return err;
}

static int cut_save(struct cut *cut, int dir)
{
	const char *name = cut->processes[0].head.dir;
	int err = datadir_check_room(name, dir, cut_bytes(cut));

	if (err)
		return err;
	criu_use_image_dir(dir);
	err = cut_copy(cut, name, true);
	criu_use_image_dir(-1);
	close_dmabufs(cut);
	/* Contents that are not on the disk yet are no reason to free the others. */
	if (!err && syncfs(dir))
		err = fail(-errno, "%s: cannot be written: %m", name);
	return err;
}

static int cut_ask(struct cut *cut, const struct task_files *files)
{
	struct share_request request = { .files = files, .machine = cut->machine };
	int err = share_begin(&request, &cut->driver);

	if (!err)
		err = stop_and_ask(cut, files);
	return err ? err : plan_all(cut, &request);
}

static int cut_prepare(struct cut *cut, const struct suspend_target *target, const char *dir, bool are_locked,
		       struct suspend_times *times)
{
	_cleanup_(task_files_done) struct task_files files = { 0 };
	_cleanup_free_ uint32_t *losses = NULL;
	_cleanup_close_ int fd = -1;
	struct datadir datadir = { 0 };
	int err = datadir_choose(dir, target->id, &datadir);

	if (!err)
		err = datadir_make_run();
	if (!err)
		err = are_locked ? take_all_locked(cut, target, &datadir) : stop_all(cut, target, &datadir);
	if (!err)
		err = datadir_make(&datadir, &fd);
	if (!err)
		err = cut_collect_files(cut, &files);
	if (!err)
		err = losses_note(&files, &losses);
	if (!err)
		err = cut_ask(cut, &files);
	if (!err && !are_locked)
		err = cut_try(cut);
	times->stopped = monotonic_seconds() - cut->began;
	if (!err)
		err = cut_save(cut, fd);
	if (!err)
		err = losses_check(&files, losses);
	times->copied = monotonic_seconds() - cut->began;
	return err;
}

/* From here on memory is lost. What is freed may have other users when it is wanted back: no time-out ends that. */
static int begin_change(struct cut *cut)
{
	int err = 0;

	alarm(0);
	for (size_t i = 0; !err && i < cut->nr; i++) {
		cut->processes[i].head.was_stopped &= hold_is_stopped(&cut->processes[i].hold);
		err = record_set(&cut->processes[i], PHASE_CHANGING);
	}
	return err;
}

static int out(const struct suspend_target *target, const char *dir, bool are_locked, const struct settings *settings,
	       struct suspend_result *ret)
{
	_cleanup_(cut_end) struct cut cut = cut_begin(settings);
	int err;

	alarm(target->timeout_seconds);
	suspend_clean();
	err = cut_read_machine(&cut);
	if (!err)
		err = cut_prepare(&cut, target, dir, are_locked, &ret->times);
	if (!err)
		err = begin_change(&cut);
	if (err) {
		alarm(0);
		if (are_locked)
			stay_locked(&cut);
		else
			cut_let_go(&cut);
		return err;
	}
	err = cut_change(&cut);
	ret->is_half = are_locked && err;
	ret->times.done = monotonic_seconds() - cut.began;
	return err ? err : cut_report(&cut, ret);
}

int suspend_out(const struct suspend_target *target, const char *dir, const struct settings *settings,
		struct suspend_result *ret)
{
	return out(target, dir, false, settings, ret);
}

int suspend_lock(const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret)
{
	_cleanup_(cut_end) struct cut cut = cut_begin(settings);
	_cleanup_(task_files_done) struct task_files files = { 0 };
	const struct datadir nowhere = { 0 };
	int err;

	alarm(target->timeout_seconds);
	suspend_clean();
	err = cut_read_machine(&cut);
	if (!err)
		err = datadir_make_run();
	if (!err)
		err = stop_all(&cut, target, &nowhere);
	if (!err)
		err = cut_collect_files(&cut, &files);
	if (!err)
		err = cut_ask(&cut, &files);
	ret->times.stopped = monotonic_seconds() - cut.began;
	if (!err)
		err = cut_try(&cut);
	if (!err)
		err = cut_lock(&cut);
	alarm(0);
	if (err)
		cut_let_go(&cut);
	ret->times.done = monotonic_seconds() - cut.began;
	return err ? err : cut_report(&cut, ret);
}

int suspend_checkpoint(const struct suspend_target *target, const char *dir, const struct settings *settings,
		       struct suspend_result *ret)
{
	return out(target, dir, true, settings, ret);
}
