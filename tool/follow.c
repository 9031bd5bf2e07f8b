// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint follow: whoever freezes a cgroup gets the GPU memory of the processes in it, and whoever thaws it
 * gets them back after their memory. Slurm, podman, docker and systemd freeze cgroups, and need not know of this.
 * With --stopped the same is for whoever sends SIGSTOP and SIGCONT, as ROCm/spur does. A suspend sends both itself, to processes
 * that have a record at that time: these are left alone.
 *
 * What is known is in the records of the processes and in the cgroups: nothing is lost with this program. A process
 * with a record in which no cgroup is named was suspended by another command, and is left alone, unless that has died half way.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "stopped/stopped.h"
#include "tool/commands.h"

#define LOCK	       "/run/amdgpu-checkpoint-follow.lock"
#define LOOK_USEC      100000
#define SETTLE_SECONDS 0.3 /* a cgroup that is frozen or thawed for a moment, as by criu, is left alone */
#define RETRY_SECONDS  2
#define MOST_SECONDS   300 /* a suspend that fails is tried again after a pause that doubles up to this */
#define LEFT_SECONDS   5   /* whatever is half way for so long has no command any more */

/* A cgroup where something is to be done, or a process. */
struct pending {
	char *cgroup;
	double from, pause; /* monotonic_seconds(): not before that; what follows a try */
	bool is_seen;
	struct suspend_waiter waiter; /* of a resume that is tried again */
};

struct follow {
	const struct arguments *arguments;
	const char *root;
	struct pending *pending;
	size_t nr_pending;
};

static volatile sig_atomic_t has_to_end;

static void end_by_signal(int signal)
{
	(void)signal;
	has_to_end = true;
}

static void say_of(const char *cgroup, const char *what)
{
	print_text("%s: %s\n", cgroup, what);
	print_finish(TOOL_GOOD);
}

/* ---- when ---- */

static struct pending *find_pending(struct follow *follow, const char *cgroup, double settle)
{
	struct pending new = { .from = monotonic_seconds() + settle, .pause = RETRY_SECONDS, .waiter.fd = -1 };

	for (size_t i = 0; i < follow->nr_pending; i++)
		if (!strcmp(follow->pending[i].cgroup, cgroup))
			return &follow->pending[i];
	new.cgroup = strdup(cgroup);
	if (new.cgroup && !array_add(follow->pending, follow->nr_pending, new))
		return &follow->pending[follow->nr_pending - 1];
	free(new.cgroup);
	return NULL;
}

/* *@quiet: it was tried before, and its failure has been said. */
static bool is_time(struct follow *follow, const char *cgroup, double settle, double most, bool *quiet)
{
	struct pending *pending = find_pending(follow, cgroup, settle);

	if (!pending)
		return false;
	pending->is_seen = true;
	if (monotonic_seconds() < pending->from)
		return false;
	*quiet = pending->pause > RETRY_SECONDS && pending->pause < MOST_SECONDS;
	pending->from = monotonic_seconds() + (pending->pause < most ? pending->pause : most);
	pending->pause = 2 * pending->pause < MOST_SECONDS ? 2 * pending->pause : MOST_SECONDS;
	return true;
}

/* Those in which nothing is to be done any more. */
static void forget_done(struct follow *follow)
{
	size_t kept = 0;

	for (size_t i = 0; i < follow->nr_pending; i++) {
		struct pending *pending = &follow->pending[i];

		if (!pending->is_seen) {
			suspend_waiter_leave(&pending->waiter);
			free(pending->cgroup);
			continue;
		}
		pending->is_seen = false;
		follow->pending[kept++] = *pending;
	}
	follow->nr_pending = kept;
}

/* ---- frozen ---- */

/* The uppermost cgroup of the process, at or below the root, that is frozen. */
static bool find_frozen(const struct follow *follow, pid_t pid, char ret[PATH_MAX])
{
	char path[PATH_MAX];
	bool more = cgroup_of(pid, path), found = false;

	for (; more && path_is_in(path, follow->root); more = cgroup_above(path)) {
		if (!cgroup_is_frozen(path))
			continue;
		memcpy(ret, path, sizeof(path));
		found = true;
	}
	return found && cgroup_all_frozen(ret);
}

static bool has_record(pid_t pid)
{
	struct suspend_info info;
	bool ret = !suspend_ask(pid, &info) && info.state != STATE_RUNNING && info.state != STATE_GONE;

	fail_clear();
	return ret;
}

/* ---- stopped ---- */

/*
 * The cgroup of the process, at or below the root, when a signal has stopped all processes in it that use a GPU, @pids. Others
 * may run: a scheduler signals the process group of a job, and not what has left that.
 */
static bool find_stopped(const struct follow *follow, const int *pids, size_t nr, pid_t pid, char ret[PATH_MAX])
{
	char path[PATH_MAX];

	if (!follow->arguments->stopped || task_state(pid) != 'T' || !cgroup_of(pid, ret) || !path_is_in(ret, follow->root))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (task_state(pids[i]) != 'T' && cgroup_of(pids[i], path) && path_is_in(path, ret) && !has_record(pids[i]))
			return false;
	return true;
}

/* ---- both ---- */

/* All of a cgroup that is frozen, since those without a GPU would run while the others make calls; of another what is stopped. */
static void suspend_cgroup(const struct follow *follow, const char *cgroup, bool by_stop, bool quiet)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, kept = 0;
	struct suspend_work work = {
		.target = { .follows = cgroup, .by_stop = by_stop },
		.dir = follow->arguments->dir, .verb = SUSPEND, .quiet = quiet,
	};

	if (cgroup_processes(cgroup, true, &pids, &nr))
		return;
	for (size_t i = 0; i < nr; i++)
		if (!has_record(pids[i]) && (!by_stop || task_state(pids[i]) == 'T'))
			pids[kept++] = pids[i];
	work.target.pids = pids;
	work.target.nr = kept;
	if (!quiet)
		say_of(cgroup, by_stop ? "is stopped by a signal" : "is frozen");
	suspend_in_child(&work);
}

static void suspend_held(struct follow *follow)
{
	_cleanup_free_ int *pids = NULL;
	char cgroup[PATH_MAX];
	bool quiet = false;
	size_t nr = 0;

	task_list_kfd(&pids, &nr);
	for (size_t i = 0; i < nr; i++) {
		bool is_frozen = find_frozen(follow, pids[i], cgroup);

		if ((is_frozen || find_stopped(follow, pids, nr, pids[i], cgroup)) && !has_record(pids[i]) &&
		    is_time(follow, cgroup, SETTLE_SECONDS, MOST_SECONDS, &quiet))
			suspend_cgroup(follow, cgroup, !is_frozen, quiet);
	}
}

/* ---- thawed, or continued ---- */

/* Whether a suspended process is to be resumed, or forgotten. What is half way was left by a follow that was killed. */
static bool is_over(const struct suspend_info *info)
{
	return info->follows[0] && (info->may_run || info->state != STATE_SUSPENDED);
}

/* All that were suspended together. Who was thawed first has memory first. */
static void resume_cgroup(struct follow *follow, const int *all, size_t nr_all, const char *cgroup, bool quiet)
{
	_cleanup_free_ int *pids = NULL;
	struct pending *pending = find_pending(follow, cgroup, 0);
	struct suspend_work work = { .quiet = quiet };
	struct suspend_info info;

	for (size_t i = 0; i < nr_all; i++)
		if (!suspend_ask(all[i], &info) && !strcmp(info.follows, cgroup) && is_over(&info) &&
		    array_add(pids, work.target.nr, all[i]))
			return;
	work.target.pids = pids;
	if (pending) {
		suspend_waiter_join(&pending->waiter);
		work.target.waiter = &pending->waiter;
	}
	if (!quiet)
		say_of(cgroup, "is thawed, continued or gone");
	suspend_in_child(&work);
}

static void resume_thawed(struct follow *follow)
{
	_cleanup_free_ int *all = NULL;
	struct suspend_info info;
	bool quiet = false;
	char name[32];
	size_t nr = 0;

	if (suspend_list(0, &all, &nr))
		complain_failure();
	for (size_t i = 0; i < nr; i++) {
		struct suspend_work work = { .target = { .pids = &all[i], .nr = 1 } };

		if (suspend_ask(all[i], &info))
			continue;
		if (is_over(&info) && is_time(follow, info.follows, SETTLE_SECONDS, RETRY_SECONDS, &quiet))
			resume_cgroup(follow, all, nr, info.follows, quiet);
		if (info.follows[0] || info.state != STATE_HALF)
			continue;
		/* Left by another command that was killed: no process traces it. */
		snprintf(name, sizeof(name), "pid %d", all[i]);
		if (hold_is_traced(all[i]) || !is_time(follow, name, LEFT_SECONDS, MOST_SECONDS, &work.quiet))
			continue;
		if (!work.quiet)
			say_of(name, "a command that was killed has left it half way");
		suspend_in_child(&work);
	}
	fail_clear();
}

/* ---- the service ---- */

int command_follow(const struct arguments *arguments)
{
	struct follow follow = { .arguments = arguments };
	const struct sigaction action = { .sa_handler = end_by_signal };
	char root[PATH_MAX];
	int lock;

	if (print_is_json())
		return complain("follow has no --json");
	if (!arguments->cgroup)
		return complain("follow wants --cgroup PATH");
	if (cgroup_path(arguments->cgroup, root))
		return TOOL_FAIL;
	if (task_in_initial_pid_ns() <= 0)
		return complain("follow has to run outside of containers: it sees processes by the machine's pids");
	if (!cgroup_is_v2(root))
		return complain("%s: is no cgroup of version 2, and nothing below it can be followed", root);
	if (access(SYSFS_TOPOLOGY_ROOT, F_OK))
		say_of(SYSFS_TOPOLOGY_ROOT, "is not there: no process uses a GPU before the driver is loaded");
	follow.root = root;
	has_to_end = false;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	lock = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0)
		return complain("%s: %s", LOCK, strerror(errno));
	/* A child that was at work when its parent was killed has it, too: it is waited for. */
	if (flock(lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		complain("another follow is at work: waiting for its end");
		while (flock(lock, LOCK_EX) && errno == EINTR && !has_to_end)
			continue;
	}
	while (!has_to_end) {
		suspend_held(&follow);
		resume_thawed(&follow);
		forget_done(&follow);
		usleep(LOOK_USEC);
	}
	forget_done(&follow);
	free(follow.pending);
	return TOOL_GOOD;
}
