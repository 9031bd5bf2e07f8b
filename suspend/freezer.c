// SPDX-License-Identifier: GPL-2.0-only
/*
 * What keeps a suspended process from running, and what keeps it from that while calls are injected.
 *
 * A suspended process is in a cgroup of its own, below the one that it was in, and that cgroup is frozen: neither
 * SIGCONT nor an engine that thaws a cgroup above lets a thread run whose memory is freed. No controller is enabled
 * there, so that limits and accounts are those of the cgroup above. A frozen thread makes no call: while calls are
 * injected, the process is stopped by SIGSTOP instead, and cgroups above that others have frozen are thawed. Why
 * SIGSTOP: when the tracer is killed, all else that keeps a thread from running without freezing it ends.
 *
 * Order of a suspend: SIGSTOP, thaw, calls; move to the cgroup, freeze it, SIGCONT. Of a resume: SIGSTOP; thaw for
 * calls, and freeze while it waits for memory and copies; move back, SIGCONT. Two of them are in effect at the moment
 * of each change, and the record is written before it.
 *
 * The command defers SIGTERM while it makes calls (defer_signals()).
 *
 * Parents: a thread that is seized does not take part in the stop, so the parent of a process with several
 * threads finds no child stopped. That of a process with one thread does, and may stop itself for it, as su does: it is
 * continued in the end. Where SIGSTOP alone stops the process it stays stopped, too, until the resume: with itself it
 * continues its child.
 *
 * Below a cgroup that others have frozen, a process can stay where it is (is_frozen_above()): that cgroup is frozen,
 * and SIGSTOP stays as well.
 *
 * Without cgroup v2, below a threaded cgroup, or at a limit for cgroups, the process is stopped by SIGSTOP alone, which
 * the command says.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "suspend/internal.h"

/* ---- the cgroup of its own ---- */

static bool is_in_own_cgroup(const struct record_head *head, char own[PATH_MAX])
{
	char now[PATH_MAX];

	return record_cgroup(head, own) && cgroup_of(head->pid, now) && !strcmp(now, own);
}

int freezer_find_cgroup(struct process *process)
{
	struct record_head *head = &process->head;
	char own[PATH_MAX], now[PATH_MAX];

	if (!record_cgroup(head, own))
		return 0;
	if (!cgroup_of(head->pid, now))
		return fail(-EOPNOTSUPP,
			    "pid %d: is frozen in %s or below it, and its cgroup cannot be seen from here: resume it where "
			    "/sys/fs/cgroup has it",
			    head->pid, head->home);
	if (strcmp(strrchr(own, '/'), strrchr(now, '/')))
		return 0;
	if (!head->by_home)
		*strrchr(now, '/') = '\0';
	memcpy(head->home, now, sizeof(head->home));
	return 0;
}

/*
 * Slurm signals and kills what is in its cgroups for tasks alone, not below them, and freezes one above. Where that is
 * so, and nobody else is there, the process stays in it.
 */
static bool is_frozen_above(const struct batch *batch, const char *home)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	bool is_above = false, ret = !cgroup_processes(home, true, &pids, &nr);

	for (size_t i = 0; ret && i < nr; i++)
		ret = batch_has(batch, pids[i]);
	for (size_t i = 0; ret && i < batch->nr_thawed; i++) {
		const char *path = batch->thawed[i].path;

		ret = strcmp(path, home);
		is_above = is_above || path_is_in(home, path);
	}
	return ret && is_above;
}

/* The record knows of the cgroup before it is there. */
static int make_own_cgroup(const struct batch *batch, struct process *process)
{
	struct record_head *head = &process->head;
	char own[PATH_MAX];
	int err;

	record_remove_cgroup(head);
	if (!cgroup_of(head->pid, head->home))
		return -ENOENT;
	head->by_home = is_frozen_above(batch, head->home);
	err = record_cgroup(head, own) ? record_write(process) : -ENAMETOOLONG;
	if (!err && head->by_home)
		return cgroup_freeze(own, true);
	if (!err)
		err = cgroup_make(own);
	if (!err)
		err = cgroup_freeze(own, true);
	return err ? err : cgroup_enter(own, head->pid);
}

static const char *why_no_cgroup(int err)
{
	if (err == -ENOENT)
		return "there is no cgroup of version 2 that it is in at /sys/fs/cgroup";
	if (err == -EOPNOTSUPP)
		return "its cgroup is threaded";
	if (err == -EAGAIN)
		return "its cgroup may have none below it: cgroup.max.depth or cgroup.max.descendants";
	return strerror(-err);
}

/* From now on it is frozen. False: it cannot be, which has been said. */
static bool freeze_process(const struct batch *batch, struct process *process)
{
	struct record_head *head = &process->head;
	char own[PATH_MAX];
	int err;

	if (is_in_own_cgroup(head, own))
		return !cgroup_freeze(own, true);
	if (process->has_no_cgroup)
		return false;
	err = make_own_cgroup(batch, process);
	process->has_no_cgroup = err;
	head->report.is_held_by_signal = err && err != -ESRCH;
	if (!err)
		return true;
	fail_clear();
	if (err != -ESRCH)
		pr_warn("pid %d: is held by SIGSTOP alone, as it cannot have a cgroup of its own (%s): SIGCONT would let it run "
			"without its memory\n",
			head->pid, why_no_cgroup(err));
	record_remove_cgroup(head);
	head->home[0] = '\0';
	head->by_home = false;
	return false;
}

/* ---- cgroups that others have frozen ---- */

/* Writes to it before this are ignored. NULL: out of memory. */
static struct thawed *note_thawed(struct batch *batch, const char *path)
{
	struct thawed thawed = { .path = strdup(path), .watch = cgroup_watch(path) };

	for (size_t i = 0; thawed.path && i < batch->nr_thawed; i++)
		if (!strcmp(batch->thawed[i].path, path)) {
			thawed_done(&batch->thawed[i]);
			batch->thawed[i] = thawed;
			return &batch->thawed[i];
		}
	if (thawed.path && !array_add(batch->thawed, batch->nr_thawed, thawed))
		return &batch->thawed[batch->nr_thawed - 1];
	thawed_done(&thawed);
	return NULL;
}

/* The cgroup of a process and all above. */
static int thaw(struct batch *batch, const struct process *process)
{
	char path[PATH_MAX], own[PATH_MAX];
	bool is_own = is_in_own_cgroup(&process->head, own), more = cgroup_of(process->head.pid, path);

	for (; more; more = cgroup_above(path), is_own = false) {
		struct thawed *noted;
		int err;

		if (!cgroup_is_frozen(path))
			continue;
		noted = is_own ? NULL : note_thawed(batch, path);
		err = is_own || noted ? 0 : -ENOMEM;
		if (!err)
			err = cgroup_freeze(path, false);
		if (err)
			return fail(err,
				    "pid %d: its cgroup %s is frozen and cannot be thawed, which suspend and resume "
				    "need: %m",
				    process->head.pid, path);
		if (noted)
			cgroup_was_written(noted->watch); /* by this */
	}
	return 0;
}

/* ---- while calls are made ---- */

static bool is_changed(const struct process *process)
{
	return process->head.phase != PHASE_COPYING;
}

/* A process that was continued meanwhile, as by Slurm before it thaws a job, is not stopped again. */
static void note_continued(struct process *process)
{
	process->head.was_stopped = process->head.was_stopped && hold_is_stopped(&process->hold);
}

static unsigned int count_stops(const struct process *process)
{
	return process->inject.nr_stops + proc_has_pending(process->head.pid, SIGSTOP);
}

/*
 * A process that others stop meanwhile stays stopped. The kernel keeps one SIGSTOP at a time: one that is sent between
 * ours and the first call that takes it is not seen.
 */
static void note_stopped_by_others(struct process *process)
{
	unsigned int nr = count_stops(process);

	if (nr > process->nr_stops && !proc_has_pending(process->head.pid, SIGCONT))
		process->head.was_stopped = process->hold.was_stopped = true;
	process->nr_stops = nr;
}

/* What others do is not seen any more when SIGSTOP is sent. */
static void note_signals(struct process *process)
{
	note_continued(process);
	note_stopped_by_others(process);
}

static int stop_by_signal(struct process *process)
{
	bool was_stopped;
	int err;

	note_signals(process);
	process->head.is_stopped = true;
	was_stopped = process->head.was_stopped;
	err = record_write(process);
	note_signals(process); /* to write takes a while */
	if (!err && process->head.was_stopped != was_stopped)
		err = record_write(process);
	if (!err && kill(process->head.pid, SIGSTOP))
		err = fail(-errno, "pid %d: cannot be stopped: %m", process->head.pid);
	process->nr_stops = count_stops(process);
	return err;
}

static void continue_process(struct process *process)
{
	static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };
	pid_t pid = process->head.pid;

	note_signals(process);
	if (process->head.is_stopped && !process->head.was_stopped) {
		uint64_t pending = proc_status(pid, "ShdPnd", 16);

		kill(pid, SIGCONT);
		/* SIGCONT discards what would stop it when it runs, as Ctrl-Z: that is sent again. */
		for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
			if (pending & 1ull << (stops[i] - 1))
				kill(pid, stops[i]);
	}
	process->head.is_stopped = false;
}

/*
 * systemd stops a unit that has this command and the job by SIGTERM for both, and SIGCONT after it: the calls that have
 * been begun are finished first, since SIGSTOP alone stops the job until then.
 */
static void defer_signals(bool defer)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGALRM);
	sigprocmask(defer ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int freezer_stop_for_calls(struct batch *batch)
{
	int err = 0;

	defer_signals(true);
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		/* Those above may have been stopped by an earlier command. */
		bool is_left = process->was_left_stopped && !process->head.was_stopped;
		pid_t above;

		if (!is_changed(process))
			continue;
		/* Those above a process with one thread may stop themselves when it is. */
		above = process->hold.nr == 1 || is_left ? process_parent(process->head.pid) : 0;
		for (; !err && above > 1; above = process_parent(above))
			if (is_left || task_state(above) != 'T')
				err = array_add(batch->parents, batch->nr_parents, above);
		if (!err)
			err = stop_by_signal(process);
	}
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		err = thaw(batch, process);
	return err;
}

/* The call that does not come back may be in a thread that is frozen. */
static void thaw_late(void *arg)
{
	struct batch *batch = arg;

	for (struct process *process = NULL; (process = batch_next(batch, process));)
		thaw(batch, process);
}

void freezer_note_stopped(struct process *process)
{
	process->was_left_stopped = process->head.is_stopped;
	/* Else it is as it was left: with SIGSTOP, which nobody needs to have taken back. */
	if (process->head.is_stopped) {
		note_continued(process);
		process->nr_stops = count_stops(process);
	} else {
		process->head.was_stopped = hold_is_stopped(&process->hold);
		process->nr_stops = process->inject.nr_stops;
		note_stopped_by_others(process);
	}
}

int freezer_look_at_thread(struct batch *batch, struct process *process)
{
	unsigned int nr_stops = process->inject.nr_stops;
	int err = inject_look(process->head.pid, process->head.kfd_number, &process->inject);

	process->inject.nr_stops = nr_stops;
	process->inject.ask = thaw_late;
	process->inject.arg = batch;
	return err;
}

/* ---- afterwards ---- */

void freezer_freeze_between_calls(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		char own[PATH_MAX];

		if (is_changed(process) && is_in_own_cgroup(&process->head, own))
			cgroup_freeze(own, true);
	}
	defer_signals(false);
}

/* Whether SIGSTOP alone holds a process below it. What has ended holds nothing. */
static bool is_above_stopped(const struct batch *batch, pid_t parent)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		const struct record_head *head = &process->head;
		pid_t above = head->pid;

		if (!head->report.is_held_by_signal || !head->is_stopped || !record_is_alive(head))
			continue;
		while (above > 1 && above != parent)
			above = process_parent(above);
		if (above == parent)
			return true;
	}
	return false;
}

/* With itself, a parent such as su would continue what SIGSTOP alone holds. */
void freezer_continue_parents(struct batch *batch)
{
	for (size_t i = 0; i < batch->nr_parents; i++) {
		pid_t parent = batch->parents[i];

		if (task_state(parent) == 'T' && task_find_mark(parent, -1) < 0 && !is_above_stopped(batch, parent))
			kill(parent, SIGCONT);
	}
	batch->nr_parents = 0;
}

void freezer_freeze(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		if (is_changed(process) && freeze_process(batch, process) && !process->head.by_home)
			continue_process(process);
	freezer_continue_parents(batch);
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		if (is_changed(process))
			record_write(process);
}

/* Where it cannot go back, it runs where it is. The kernel says nothing of one that was killed, and leaves it there. */
static bool leave_own_cgroup(const struct record_head *head)
{
	char own[PATH_MAX];
	int err;

	if (!is_in_own_cgroup(head, own))
		return true;
	err = head->by_home ? cgroup_freeze(own, false) : cgroup_enter(head->home, head->pid);
	if (!err || err == -ESRCH)
		return head->by_home || !is_in_own_cgroup(head, own);
	cgroup_freeze(own, false);
	pr_warn("pid %d: cannot go back to its cgroup %s (%s): it runs on in %s\n", head->pid, head->home, strerror(-err), own);
	return true;
}

bool freezer_release(struct process *process)
{
	bool is_left = leave_own_cgroup(&process->head);

	if (is_changed(process))
		continue_process(process);
	return is_left;
}

/* ---- around a dump ---- */

int freezer_change_to_signal(struct process *process)
{
	struct record_head *head = &process->head;
	int err = freezer_find_cgroup(process);

	if (err)
		return err;
	freezer_note_stopped(process);
	err = stop_by_signal(process);
	if (!err && !leave_own_cgroup(head))
		err = fail(-ESRCH, "pid %d: has ended", head->pid);
	if (!err)
		record_remove_cgroup(head);
	return err;
}

void freezer_change_to_cgroup(struct process *process)
{
	struct record_head *head = &process->head;
	const struct batch none = { 0 };

	if (head->by_home)
		cgroup_freeze(head->home, true);
	else if (!head->report.is_held_by_signal)
		freeze_process(&none, process);
	record_write(process);
}

/* A cgroup that its owner has thawed meanwhile stays so. */
void freezer_end(struct batch *batch)
{
	for (size_t i = 0; i < batch->nr_thawed; i++) {
		const struct thawed *thawed = &batch->thawed[i];
		int err = cgroup_was_written(thawed->watch) ? 0 : cgroup_freeze(thawed->path, true);

		if (err)
			pr_warn("%s: was frozen, and cannot be frozen again: %s\n", thawed->path, strerror(-err));
	}
	freezer_continue_parents(batch);
	defer_signals(false);
}
