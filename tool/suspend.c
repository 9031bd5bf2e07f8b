// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint suspend, resume and state: processes that stay where they are, with and without their GPU memory.
 *
 * What changes processes is done by a child of this program, which goes on when somebody presses Ctrl-C. When the child
 * is killed, this program lets the processes run again; when both are, "resume" does.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "stopped/stopped.h"
#include "suspend/suspend.h"
#include "tool/commands.h"

#define BACK_SECONDS 10 /* so long another command may have the processes that are to be taken back */
#define BACK_USEC    100000

/* What it makes of processes, and what its times are. */
static const struct {
	const char *state, *vram, *stopped, *copied, *done;
} verbs[] = {
	[RESUME] = { "running", ", VRAM back: ", "memory allocated after ", " ms, data copied after ", " ms, running after " },
	[SUSPEND] = { "suspended", ", VRAM freed: ", "queues stopped after ", " ms, data copied after ", " ms, memory free after " },
	[LOCK] = { "locked", NULL, "queues stopped after ", NULL, " ms, locked after " },
	[CHECKPOINT] = { "suspended", ", VRAM freed: ", NULL, "data copied after ", " ms, memory free after " },
	[RESTORE] = { "locked", ", VRAM back: ", "memory allocated after ", " ms, data copied after ", " ms, locked after " },
	[UNLOCK] = { "running", NULL, NULL, NULL, "running after " },
};

/* ---- which processes ---- */

int cgroup_path(const char *cgroup, char path[PATH_MAX])
{
	bool is_whole = path_is_in(cgroup, CGROUPS);

	snprintf(path, PATH_MAX, "%s%s%s", is_whole ? "" : CGROUPS, is_whole || cgroup[0] == '/' ? "" : "/", cgroup);
	while (path[strlen(path) - 1] == '/')
		path[strlen(path) - 1] = '\0';
	return access(path, F_OK) ? complain("%s: %s", path, strerror(errno)) : TOOL_GOOD;
}

/* ---- what has become of them ---- */

static const struct {
	const char *key, *why;
} kept[SUSPEND_NR_KEPT] = {
	[KEPT_BY_QUEUES] = { "kept_by_queues_bytes", " stays allocated: its queues need it" },
	[KEPT_BY_SHARING] = { "kept_by_sharing_bytes", " stays allocated: it is or may be shared (IPC, dma-buf, VMM)" },
	[KEPT_BY_MAPPING] = { "kept_by_mapping_bytes",
			      " stays allocated: the kernel does not free it, or its mappings could not be restored" },
	[KEPT_BY_RENDER_NODE] = { "kept_by_render_node_bytes", " stays allocated: it has no BO of the KFD" },
};

static void print_state(pid_t pid, const char *state, bool is_gone)
{
	print_number("pid", "pid ", (uint64_t)pid);
	print_string("state", ": ", state);
	print_text("%s", is_gone ? ", its buffer data are removed" : "");
}

/* @before: the size of what is freed or restored, in text. What has ended has nothing allocated any more. */
static void print_vram(const struct suspend_report *report, const char *before, bool is_gone)
{
	print_bytes("vram_bytes", is_gone ? NULL : before, report->freed_bytes);
	for (size_t i = 0; i < SUSPEND_NR_KEPT; i++) {
		uint64_t bytes = is_gone ? 0 : report->kept_bytes[i];

		print_bytes(kept[i].key, bytes ? "; " : NULL, bytes);
		print_text("%s", bytes ? kept[i].why : "");
	}
}

static void print_hold(const struct suspend_report *report, bool is_held)
{
	print_bool("gpu_was_reset", report->reset_minor);
	if (report->reset_minor)
		print_text("; the driver has reset the GPU of renderD%u meanwhile", report->reset_minor);
	if (is_held)
		print_string("held_by", NULL, report->is_held_by_signal ? "SIGSTOP" : "cgroup");
	if (is_held && report->is_held_by_signal)
		print_text("; held by SIGSTOP alone: SIGCONT would let it run without its memory");
}

static void print_time(const char *key, const char *before, double seconds)
{
	print_number(key, before, (uint64_t)(seconds * 1000));
}

static void print_result(const struct suspend_result *result, enum suspend_verb verb)
{
	const char *what = verbs[verb].vram;

	print_array("processes");
	for (size_t i = 0; i < result->nr; i++) {
		const struct suspend_report *report = &result->reports[i];

		print_object(NULL);
		print_state(report->pid, report->had_ended ? "gone" : verbs[verb].state, report->had_ended);
		if (what)
			print_vram(report, report->has_kfd ? what : NULL, report->had_ended);
		print_hold(report, verb != RESUME && verb != UNLOCK && !report->had_ended);
		print_text("\n");
		print_end();
	}
	print_end();
	print_time("stopped_ms", verbs[verb].stopped, result->times.stopped);
	print_time("copied_ms", verbs[verb].copied, result->times.copied);
	print_time("done_ms", verbs[verb].done, result->times.done);
	print_text(" ms\n");
}

/* ---- the child ---- */

/* Whether none of the processes is suspended: no other failure is without words. */
static bool is_nothing(int err)
{
	return err == -ENOENT && !fail_text()[0];
}

/* Who suspends wants the room; who resumes has to hear what a reset has taken. */
static int status_of(const struct suspend_result *result, enum suspend_verb verb)
{
	bool frees = verb == SUSPEND || verb == CHECKPOINT;
	uint64_t freed = 0, left = 0;
	int status = TOOL_GOOD;

	for (size_t i = 0; i < result->nr; i++) {
		const struct suspend_report *report = &result->reports[i];

		freed += report->freed_bytes;
		for (size_t j = 0; j < SUSPEND_NR_KEPT; j++)
			left += report->kept_bytes[j];
		if (frees || !report->reset_minor || report->had_ended)
			continue;
		complain("pid %d: runs again, but the driver has reset the GPU of renderD%u since it was suspended: what had "
			 "stayed in VRAM, such as its queues, is lost; it may hang, or end with an error",
			 report->pid, report->reset_minor);
		status = TOOL_RESET;
	}
	return frees && freed < left ? TOOL_LITTLE : status;
}

static int do_verb(const struct suspend_work *work, const struct settings *settings, struct suspend_result *ret)
{
	static const enum resume_to to[] = {
		[RESUME] = RESUME_TO_RUN, [RESTORE] = RESUME_TO_LOCK, [UNLOCK] = RESUME_FROM_LOCK,
	};
	struct suspend_target target = work->target;

	target.are_locked = work->verb == CHECKPOINT;
	if (work->verb == LOCK)
		return suspend_lock(&target, settings, ret);
	if (work->verb == SUSPEND || work->verb == CHECKPOINT)
		return suspend_processes(&target, work->dir, settings, ret);
	return suspend_resume(&target, to[work->verb], work->wait_seconds, settings, ret);
}

/*
 * What has not come to its end is undone. Who was to be suspended, locked, resumed or unlocked runs; the others are locked.
 * Nothing is lost by that, wherever they are. 0 or -errno.
 */
static int take_back(const struct suspend_work *work)
{
	struct suspend_work back = *work;
	double end = monotonic_seconds() + BACK_SECONDS;
	struct suspend_result result = { 0 };
	struct settings settings;
	int err = settings_load(&settings, SETTINGS_MACHINE_CONF, -1, options_or_environment);
	bool again = !err;

	back.wait_seconds = 0;
	if (work->verb == SUSPEND || work->verb == LOCK) {
		back.verb = RESUME;
		back.target = (struct suspend_target){ .id = work->target.id };
	} else if (work->verb == CHECKPOINT) {
		back.verb = RESTORE;
		back.target.id = 0;
	}
	while (again) {
		err = do_verb(&back, &settings, &result);
		/* Somebody traces them, who may be another command that brings them back. */
		again = (err == -EPERM || err == -EAGAIN) && monotonic_seconds() < end && !usleep(BACK_USEC);
		if (again)
			fail_clear();
	}
	free(result.reports);
	if (is_nothing(err))
		return 0;
	if (err)
		complain_failure();
	fail_clear();
	return err;
}

static int run_child(const struct suspend_work *work)
{
	struct suspend_result result = { 0 };
	struct settings settings;
	bool is_half = false;
	int err, status = TOOL_FAIL;

	setsid();
	signal(SIGHUP, SIG_IGN);
	err = settings_load(&settings, SETTINGS_MACHINE_CONF, -1, options_or_environment);
	if (!err) {
		err = do_verb(work, &settings, &result);
		is_half = work->verb == SUSPEND || work->verb == LOCK || result.is_half;
	}
	if (!err) {
		print_result(&result, work->verb);
		status = status_of(&result, work->verb);
	}
	free(result.reports);
	if (is_nothing(err))
		status = TOOL_NOTHING;
	else if (!work->quiet)
		complain_failure();
	if (is_half && status == TOOL_FAIL)
		take_back(work);
	suspend_clean();
	return status == TOOL_NOTHING ? status : print_finish(status);
}

int suspend_in_child(const struct suspend_work *asked)
{
	struct suspend_work work = *asked;
	bool is_late, is_locking;
	sigset_t alarms;
	pid_t child;
	int status = 0;

	/* What the caller does with signals is inherited: the child's status is needed here, and the end of its time there. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	/* Who reads the answer may have ended, and a limit of the size of files is an error like others: no reason to die. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	work.target.id = work.verb == SUSPEND || work.verb == LOCK || work.verb == CHECKPOINT ? suspend_new_id() : 0;
	fflush(stdout);
	child = fork();
	if (child < 0)
		return complain("cannot fork: %s", strerror(errno));
	if (!child)
		_exit(run_child(&work));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	is_locking = work.verb == CHECKPOINT || work.verb == RESTORE;
	is_late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	if (is_late && work.verb == CHECKPOINT) {
		work.verb = UNLOCK; /* nothing is freed, and they run on */
		work.target.id = 0;
	}
	if (is_late && !take_back(&work)) {
		complain("not copied within %u s (--timeout): nothing is suspended, the processes run again",
			 work.target.timeout_seconds);
		return TOOL_BAD;
	}
	if (!WIFEXITED(status))
		return complain("was killed%s",
				take_back(&work) ? ": run \"amdgpu-checkpoint resume\" to continue" :
				is_locking       ? "; the processes are locked" :
						   "; the processes run again");
	return WEXITSTATUS(status);
}

int seconds_of(const char *option, const char *text, unsigned int *ret)
{
	const char *end = "";
	uint64_t seconds = 0;

	if (text && (parse_digits(text, 10, 1u << 30, &end, &seconds) || *end))
		return complain("%s wants a number of seconds", option);
	*ret = (unsigned int)seconds;
	return TOOL_GOOD;
}

int command_verb(const struct arguments *arguments)
{
	struct suspend_work work = { .dir = arguments->dir, .verb = arguments->verb };
	struct suspend_info info;
	char path[PATH_MAX];
	int status;

	work.target = (struct suspend_target){ .pids = arguments->pids, .nr = arguments->nr_pids, .tree = arguments->tree };
	work.target.cgroup = arguments->cgroup ? path : NULL;
	if (!arguments->cgroup && !arguments->nr_pids)
		return complain("which process? (pids, or --cgroup PATH)");
	if ((arguments->cgroup && cgroup_path(arguments->cgroup, path)) ||
	    seconds_of("--wait", arguments->wait, &work.wait_seconds) ||
	    seconds_of("--timeout", arguments->timeout, &work.target.timeout_seconds))
		return TOOL_FAIL;
	status = suspend_in_child(&work);
	if (status != TOOL_NOTHING) /* the child has said all */
		_exit(status);
	for (size_t i = 0; i < arguments->nr_pids; i++)
		if (suspend_ask(arguments->pids[i], &info) == -EXDEV)
			return complain_failure();
	fail_clear();
	if (work.verb == RESUME && arguments->nr_pids == 1 && !arguments->tree && !arguments->cgroup)
		return resume_queues(arguments->pids[0]);
	print_text("no process of them is %s\n", work.verb == UNLOCK ? "locked" : "suspended");
	return TOOL_BAD;
}

/* ---- state ---- */

/* What its record says cannot be known here: it was suspended elsewhere, or by another version, or the record is damaged. */
static int print_unknown(pid_t pid, int err)
{
	if (err != -ESRCH) {
		print_object(NULL);
		print_state(pid, "unknown", false);
		print_text("\n");
		if (print_is_json())
			print_string("error", NULL, fail_text());
		print_end();
	}
	return complain_failure();
}

static int ask_state(pid_t pid)
{
	static const char *const states[] = {
		[STATE_RUNNING] = "running",
		[STATE_HALF] = "half",
		[STATE_SUSPENDED] = "suspended",
		[STATE_LOCKED] = "locked",
		[STATE_GONE] = "gone",
	};
	_cleanup_free_ int *pids = NULL; /* of the KFD */
	struct suspend_info info;
	bool is_gone;
	char since[64] = "";
	size_t nr = 0;
	time_t when;
	struct tm tm;
	int err = suspend_ask(pid, &info);

	if (err)
		return print_unknown(pid, err);
	is_gone = info.state == STATE_GONE;
	when = (time_t)info.since;
	if (info.since && localtime_r(&when, &tm))
		strftime(since, sizeof(since), "%F %T", &tm);
	print_object(NULL);
	print_state(pid, states[info.state], is_gone);
	if (info.state == STATE_RUNNING && task_in_initial_pid_ns() > 0 && !task_list_kfd(&pids, &nr) &&
	    !numbers_have(pids, nr, pid))
		print_text(" (without /dev/kfd)");
	print_number("since", NULL, (uint64_t)info.since);
	if (since[0] && !is_gone)
		print_text(" since %s", since);
	print_string("dir", is_gone ? NULL : ", buffer data in ", info.dir);
	print_vram(&info.report, info.dir[0] ? ": " : NULL, is_gone);
	print_hold(&info.report, info.state == STATE_SUSPENDED || info.state == STATE_LOCKED);
	print_text("%s\n", info.state == STATE_HALF ? "; \"amdgpu-checkpoint resume\" continues from there" : "");
	print_end();
	return TOOL_GOOD;
}

int print_states(const struct arguments *arguments)
{
	_cleanup_free_ int *all = NULL;
	const int *pids = arguments->pids;
	size_t nr = arguments->nr_pids;
	int status = TOOL_GOOD;

	if (!nr && suspend_list(0, &all, &nr))
		return TOOL_FAIL;
	pids = nr && all ? all : pids;
	if (!nr)
		print_text("no process is suspended\n");
	print_array("processes");
	for (size_t i = 0; i < nr; i++)
		if (ask_state(pids[i]) != TOOL_GOOD)
			status = TOOL_FAIL;
	print_end();
	return status;
}
