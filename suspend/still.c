// SPDX-License-Identifier: GPL-2.0-only
/*
 * What keeps processes still while calls are injected, and when no tracer is there any more.
 *
 * While calls are injected: SIGSTOP. A frozen thread makes none, so that each cgroup above that is frozen, or becomes
 * so, is thawed for that time. Afterwards both: SIGSTOP, and the freezer of the process' own cgroup where that has no
 * process but those of the cut. So neither the thaw of an engine, which freezes by a cgroup above, nor a stray SIGCONT
 * lets a thread run that has lost its memory.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "suspend/internal.h"

/* Whether nobody else is in the cgroup, or below it. */
static bool is_of_cut(const struct cut *cut, const char *path)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	bool ret = !cgroup_processes(path, true, &pids, &nr);

	for (size_t i = 0; ret && i < nr; i++)
		ret = cut_has(cut, pids[i]);
	return ret;
}

static struct thawed *find_thawed(const struct cut *cut, const char *path)
{
	for (size_t i = 0; i < cut->nr_thawed; i++)
		if (!strcmp(cut->thawed[i].path, path))
			return &cut->thawed[i];
	return NULL;
}

/* What was written before is of no account. */
static int note_thawed(struct cut *cut, const char *path, bool is_late)
{
	struct thawed thawed = { .path = strdup(path), .watch = cgroup_watch(path), .is_late = is_late };
	struct thawed *known = find_thawed(cut, path);
	int err = thawed.path ? 0 : -ENOMEM;

	if (!err && known) {
		thawed_done(known);
		*known = thawed;
	} else if (!err) {
		err = array_add(cut->thawed, cut->nr_thawed, thawed);
	}
	if (err)
		thawed_done(&thawed);
	return err;
}

/* The cgroup of a process and all above. */
static int thaw(struct cut *cut, pid_t pid, bool is_late)
{
	char path[PATH_MAX];
	bool more = cgroup_of(pid, path);

	for (; more; more = cgroup_above(path)) {
		int err;

		if (!cgroup_is_frozen(path))
			continue;
		err = note_thawed(cut, path, is_late);
		if (!err)
			err = cgroup_freeze(path, false);
		if (!err)
			cgroup_was_written(find_thawed(cut, path)->watch); /* by this */
		else
			return fail(err,
				    "pid %d: its cgroup %s is frozen and cannot be thawed, which suspend and resume "
				    "need: %m",
				    pid, path);
	}
	return 0;
}

int still_for_calls(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; i < cut->nr; i++)
		if (!cut->processes[i].has_ended && cut->processes[i].head.phase != PHASE_COPYING)
			kill(cut->processes[i].head.pid, SIGSTOP);
	for (size_t i = 0; !err && i < cut->nr; i++)
		if (!cut->processes[i].has_ended)
			err = thaw(cut, cut->processes[i].head.pid, false);
	return err;
}

/* The call that does not come back may be in a thread that is frozen. */
static void thaw_late(void *arg)
{
	struct cut *cut = arg;

	for (size_t i = 0; i < cut->nr; i++)
		if (!cut->processes[i].has_ended)
			thaw(cut, cut->processes[i].head.pid, true);
}

int still_look(struct cut *cut, struct process *process)
{
	int err = inject_look(process->head.pid, &process->inject);

	process->inject.ask = thaw_late;
	process->inject.arg = cut;
	return err;
}

/* Whether somebody else has the process' own cgroup frozen still. */
static bool is_thawed_for_now(const struct cut *cut, const char *path, const struct record_head *head)
{
	const struct thawed *thawed = find_thawed(cut, path);

	return thawed && !thawed->was_written && (thawed->is_late || !head->is_frozen);
}

/* Without a cgroup of its own, SIGSTOP alone holds a process. */
void still_freeze(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr_thawed; i++)
		cut->thawed[i].was_written = cgroup_was_written(cut->thawed[i].watch);
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];
		struct record_head *head = &process->head;
		char path[PATH_MAX];

		if (process->has_ended || !cgroup_of(head->pid, path) || !is_of_cut(cut, path))
			continue;
		head->was_frozen = head->was_frozen || is_thawed_for_now(cut, path, head);
		head->is_frozen = true;
		/* Before it is so: whoever resumes the process after a kill has to know whose freeze that is. */
		head->is_frozen = !record_write(process);
		if (head->is_frozen && cgroup_freeze(path, true)) {
			head->is_frozen = false;
			record_write(process);
		}
	}
}

/* Whether a cgroup is frozen by a suspend alone. */
static bool is_frozen_by_us(const struct cut *cut, const char *path)
{
	for (size_t i = 0; i < cut->nr; i++) {
		const struct record_head *head = &cut->processes[i].head;
		char own[PATH_MAX];

		if (head->is_frozen && !head->was_frozen && cgroup_of(head->pid, own) && !strcmp(own, path))
			return true;
	}
	return false;
}

/* Whoever has frozen a cgroup may have thawed it meanwhile, and is not overruled. */
void still_after(struct cut *cut, bool stay)
{
	for (size_t i = 0; i < cut->nr_thawed; i++) {
		const struct thawed *thawed = &cut->thawed[i];
		int err = 0;

		if (!thawed->was_written && !cgroup_was_written(thawed->watch) &&
		    (stay || thawed->is_late || !is_frozen_by_us(cut, thawed->path)))
			err = cgroup_freeze(thawed->path, true);
		if (err)
			pr_warn("%s: was frozen, and cannot be frozen again: %s\n", thawed->path, strerror(-err));
	}
}
