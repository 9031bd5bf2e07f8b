// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds processes: seizes their threads, moves them to other cgroups and freezes these. A thread that is seized is not
 * told of it: it goes on with the call that it is in.
 *
 * A thread in a frozen cgroup can be seized and looked at, but runs no code, and so makes no injected call, before the
 * cgroup is thawed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "stopped/hold.h"
#include "stopped/inject.h"
#include "amdgpu_plugin_util.h"

#define WAIT_USEC 1000
#define PF_EXITING 0x4 /* of the kernel's flags in /proc/PID/stat */

/* ---- /proc ---- */

/* A number of /proc/PID/stat, by its place there, from the fourth on; 0: there is no such process. */
static uint64_t stat_number(pid_t pid, int place)
{
	char line[1024];
	const char *rest = proc_stat(pid, line, sizeof(line)); /* the third */

	for (; rest && place > 3; place--)
		rest = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : NULL;
	return rest ? strtoull(rest, NULL, 10) : 0;
}

uint64_t process_start(pid_t pid)
{
	return stat_number(pid, 22);
}

pid_t process_parent(pid_t pid)
{
	return (pid_t)stat_number(pid, 4);
}

char task_state(pid_t tid)
{
	char line[1024];
	const char *rest = proc_stat(tid, line, sizeof(line));

	return rest ? rest[0] : 0;
}

int processes_add_descendants(int **pids, size_t *nr)
{
	_cleanup_free_ int *all = NULL;
	size_t nr_all = 0, before;
	int err = list_numbers(AT_FDCWD, "/proc", &all, &nr_all);

	do {
		before = *nr;
		for (size_t i = 0; !err && i < nr_all; i++)
			if (numbers_have(*pids, *nr, process_parent(all[i])) && !numbers_have(*pids, *nr, all[i]))
				err = array_add(*pids, *nr, all[i]);
	} while (!err && *nr > before);
	return err;
}

/* ---- threads ---- */

/* *ret_signal: that which has stopped the process, SIGTRAP: none. */
static int wait_for_stop(pid_t tid, double end, int *ret_signal)
{
	for (;;) {
		int status, signal;
		pid_t r = waitpid(tid, &status, __WALL | WNOHANG);

		if (r == tid && !WIFSTOPPED(status))
			return -ESRCH;
		if (r == tid && status >> 16 == PTRACE_EVENT_STOP) {
			*ret_signal = WSTOPSIG(status);
			return 0;
		}
		/* A signal on its way to the thread, which gets it. */
		signal = r == tid && !(status >> 16) ? WSTOPSIG(status) : 0;
		if (r == tid && ptrace(PTRACE_CONT, tid, NULL, signal))
			return -errno;
		if (r)
			continue;
		if (task_has_ended(tid)) {
			waitpid(tid, &status, __WALL | WNOHANG); /* which its process could not end without */
			return -ESRCH;
		}
		if (monotonic_seconds() > end)
			return -EBUSY;
		usleep(WAIT_USEC);
	}
}

static int fail_seize(pid_t pid, pid_t tid, int err)
{
	pid_t tracer = (pid_t)proc_status(tid, "TracerPid", 10);
	_cleanup_fclose_ FILE *f = NULL;
	char name[64] = "";

	if (err == -EBUSY)
		return fail(err,
			    "pid %d: its thread %d is in a system call that cannot be interrupted (vfork(), for example): "
			    "try again later",
			    pid, tid);
	if (err != -EPERM || !tracer)
		return fail(err, "pid %d: cannot stop its thread %d: %m%s", pid, tid,
			    err == -EPERM ? " (only root may, and no process can stop itself)" : "");
	f = proc_file(tracer, "comm");
	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	return fail(err, "pid %d: cannot stop its thread %d: process %d (%s) traces it: try again when that has ended", pid,
		    tid, tracer, name);
}

/* PTRACE_SEIZE says EPERM also of a thread that is on its way out. */
static bool is_ending(pid_t tid, int err)
{
	return err == -ESRCH || (err == -EPERM && task_has_ended(tid));
}

bool process_is_ending(pid_t pid)
{
	uint64_t pending = proc_status(pid, "ShdPnd", 16) | proc_status(pid, "SigPnd", 16);

	/* Whether it has ended meanwhile is asked last. */
	return pending & 1ull << (SIGKILL - 1) || stat_number(pid, 9) & PF_EXITING || task_has_ended(pid);
}

bool hold_is_traced(pid_t pid)
{
	pid_t tracer = (pid_t)proc_status(pid, "TracerPid", 10);

	return tracer && !process_is_ending(tracer);
}

/* Waits for a tracer that is about to end. */
static int seize(pid_t tid, double end)
{
	bool was_traced = true;

	for (;;) {
		int err = ptrace(PTRACE_SEIZE, tid, NULL, (void *)INJECT_OPTIONS) ? -errno : 0;

		/* It may be let go of between the two questions, once. */
		if (err != -EPERM || !was_traced || is_ending(tid, err) || hold_is_traced(tid) || monotonic_seconds() > end)
			return err;
		was_traced = proc_status(tid, "TracerPid", 10);
		usleep(WAIT_USEC);
	}
}

/* Those of the threads that are not held yet. A thread that ends meanwhile is passed over. */
static int seize_new(struct hold *hold, const int *tids, size_t nr, double end)
{
	size_t first = hold->nr;
	int err;

	for (size_t i = 0; i < nr; i++) {
		if (numbers_have(hold->tids, first, tids[i]))
			continue;
		/* In the list before it is seized: a thread that is in none would not be let go. */
		if (array_add(hold->tids, hold->nr, tids[i]))
			return -ENOMEM;
		err = seize(tids[i], end);
		if (err) {
			hold->nr--;
			if (is_ending(tids[i], err))
				continue;
			return fail_seize(hold->pid, tids[i], err);
		}
		ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL);
	}
	return 0;
}

static int wait_for_all(struct hold *hold, size_t first, double end)
{
	size_t kept = first;

	for (size_t i = first; i < hold->nr; i++) {
		int signal = SIGTRAP, err = wait_for_stop(hold->tids[i], end, &signal);

		if (err && err != -ESRCH)
			return fail_seize(hold->pid, hold->tids[i], err);
		hold->was_stopped |= signal != SIGTRAP;
		if (!err)
			hold->tids[kept++] = hold->tids[i];
	}
	hold->nr = kept;
	return 0;
}

/* Thread numbers wrap around: the leader's need not be the lowest. */
static int put_leader_first(struct hold *hold)
{
	size_t i = 0;

	while (i < hold->nr && hold->tids[i] != hold->pid)
		i++;
	if (i == hold->nr && i)
		return fail(-EOPNOTSUPP, "pid %d: its first thread has ended, without which it cannot be suspended", hold->pid);
	if (i == hold->nr)
		return fail(-ESRCH, "pid %d: has ended", hold->pid);
	hold->tids[i] = hold->tids[0];
	hold->tids[0] = hold->pid;
	return 0;
}

/* Threads make others until all are stopped. */
static int seize_all(struct hold *hold)
{
	double end = monotonic_seconds() + HOLD_SECONDS;
	size_t before;

	do {
		_cleanup_free_ int *tids = NULL;
		size_t nr = 0;
		int err = proc_list(hold->pid, "task", &tids, &nr);

		before = hold->nr;
		if (err)
			return fail(err == -ENOENT ? -ESRCH : err, "pid %d: there is no such process", hold->pid);
		err = seize_new(hold, tids, nr, end);
		if (!err)
			err = wait_for_all(hold, before, end);
		if (err)
			return err;
	} while (hold->nr > before);
	return put_leader_first(hold);
}

int hold_begin(pid_t pid, bool calls, struct hold *ret)
{
	int err;

	*ret = (struct hold){ .pid = pid };
	err = seize_all(ret);
	/* SIGSTOP may be on its way. */
	ret->was_stopped |= proc_has_pending(pid, SIGSTOP);
	if (!err && calls && proc_status(pid, "Seccomp", 10) &&
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, INJECT_OPTIONS | PTRACE_O_SUSPEND_SECCOMP))
		err = fail(-EOPNOTSUPP,
			   "pid %d: has a seccomp filter, which cannot be suspended (%s): its calls might not be allowed", pid,
			   errno == EPERM ? "that takes CAP_SYS_ADMIN" : "this kernel has no CONFIG_CHECKPOINT_RESTORE");
	if (err)
		hold_end(ret);
	return err;
}

/* SIGCONT has its effect at once, and then waits for the process to take it. */
bool hold_is_stopped(const struct hold *hold)
{
	return hold->was_stopped && !proc_has_pending(hold->pid, SIGCONT);
}

/* A thread that is not in a ptrace stop is detached when the tracer ends. */
void hold_end(struct hold *hold)
{
	for (size_t i = 0; i < hold->nr; i++)
		ptrace(PTRACE_DETACH, hold->tids[i], NULL, NULL);
	free(hold->tids);
	*hold = (struct hold){ 0 };
}

/* ---- cgroups ---- */

static int open_in(const char *path, const char *name, int flags)
{
	_cleanup_close_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, name, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool cgroup_is_v2(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* What is not below the root that this program sees begins with "/..", and is not where the path leads. */
bool cgroup_of(pid_t pid, char path[PATH_MAX])
{
	_cleanup_fclose_ FILE *f = proc_file(pid, "cgroup");
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		_cleanup_close_ int fd = -1;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::/", 4) || !strcmp(line, "0::/..") || !strncmp(line, "0::/../", 7))
			continue;
		if (snprintf(path, PATH_MAX, CGROUPS "%s", line[4] ? line + 3 : "") >= PATH_MAX)
			return false;
		fd = open_in(path, "cgroup.procs", O_PATH);
		return fd >= 0;
	}
	return false;
}

bool cgroup_above(char *path)
{
	*strrchr(path, '/') = '\0';
	return strlen(path) > strlen(CGROUPS);
}

bool cgroup_all_frozen(const char *path)
{
	_cleanup_close_ int fd = open_in(path, "cgroup.events", O_RDONLY);
	char events[256];

	return fd >= 0 && !read_text(fd, events, sizeof(events)) && strstr(events, "frozen 1");
}

bool cgroup_is_frozen(const char *path)
{
	_cleanup_close_ int fd = open_in(path, "cgroup.freeze", O_RDONLY);
	char digit = '0';

	return fd >= 0 && read(fd, &digit, 1) == 1 && digit == '1';
}

int cgroup_freeze(const char *path, bool freeze)
{
	_cleanup_close_ int fd = open_in(path, "cgroup.freeze", O_WRONLY);

	return fd < 0 ? fd : write_all(fd, freeze ? "1" : "0", 1);
}

int cgroup_make(const char *path)
{
	_cleanup_close_ int fd = -1;
	char type[32] = "";
	int err = 0;

	if (mkdir(path, 0755) && (errno != EEXIST || rmdir(path) || mkdir(path, 0755)))
		return -errno;
	/* Below a cgroup that is threaded, or whose threads are in several, a new one takes no process. */
	fd = open_in(path, "cgroup.type", O_RDONLY);
	if (fd < 0)
		err = fd;
	else if (read(fd, type, sizeof(type) - 1) < 0)
		err = -errno;
	else if (strcmp(type, "domain\n"))
		err = -EOPNOTSUPP;
	if (err)
		rmdir(path);
	return err;
}

int cgroup_enter(const char *path, pid_t pid)
{
	_cleanup_close_ int fd = open_in(path, "cgroup.procs", O_WRONLY);
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return fd < 0 ? fd : write_all(fd, text, strlen(text));
}

int cgroup_watch(const char *path)
{
	_cleanup_close_ int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char name[PATH_MAX + 16];

	snprintf(name, sizeof(name), "%s/cgroup.freeze", path);
	if (fd < 0 || inotify_add_watch(fd, name, IN_MODIFY) < 0)
		return -errno;
	return steal_fd(&fd);
}

bool cgroup_was_written(int watch)
{
	struct inotify_event event;

	return read(watch, &event, sizeof(event)) > 0;
}

static int read_processes(const char *path, int **list, size_t *nr)
{
	_cleanup_fclose_ FILE *f = NULL;
	char name[PATH_MAX + 16];
	int pid, err = 0;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (!err && fscanf(f, "%d", &pid) == 1)
		err = array_add(*list, *nr, pid);
	return err;
}

int cgroup_processes(const char *path, bool below, int **ret, size_t *ret_nr)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *entry;
	int err = dir ? read_processes(path, ret, ret_nr) : -errno;

	while (!err && below && (entry = readdir(dir))) {
		char inner[PATH_MAX];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >= (int)sizeof(inner))
			return -ENAMETOOLONG;
		err = cgroup_processes(inner, true, ret, ret_nr);
		/* A cgroup may go while it is looked at. */
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}
