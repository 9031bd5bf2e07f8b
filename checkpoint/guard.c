// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child of criu that lets the GPU queues run again when criu ends in the middle of a dump, in whatever way: by
 * SIGKILL, for lack of memory, or by its own exit() when a task is killed while it is saved, of which no plugin hears.
 *
 * A process, since criu enters namespaces, which Linux refuses to a program with threads. Its end sends no signal: criu
 * takes a child that ends by SIGCHLD for a task. It is gone when the plugin is: criu then waits for all its children.
 * It has no file of criu's or of a task, and is in a session of its own with all signals blocked, so that what ends
 * criu's terminal or process group leaves it; at criu's end it has what it needs to attach to the tasks, which the
 * kernel has just released. It takes UNPAUSE from their tracer alone. The tasks are let go with the end of the guard,
 * and do not stop for it.
 *
 * A process ends with its last thread. One that writes to a disk that does not answer outlives SIGKILL, and the tracer: so
 * the guard also looks whether a task still has criu as its tracer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "kernel/kernel.h"
#include "suspend/suspend.h"

/* How long another tracer, such as the next criu, which heals the tasks itself, is waited for. */
#define SEIZE_TRIES	 200
#define SEIZE_RETRY_USEC 10000

/* How often the tasks' tracer is looked for. */
#define LOOK_MSEC 500

/* Memory runs short when large jobs are dumped; this process has none to speak of. */
#define NEVER_KILLED "-1000"

/* A task of the dump. */
struct ward {
	pid_t pid;
	int pidfd; /* tells it from a later one with this number */
	bool is_seized;
};

/* ---- the guard, at criu's end ---- */

static bool pidfd_has_ended(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

/* Queues of other tasks, and those that run, the driver leaves alone. */
static void let_run(pid_t pid)
{
	struct task_files files = { 0 };

	/* It is suspended: its GPU memory is freed. */
	if (task_find_mark(pid, -1) >= 0) {
		suspend_hold_again(pid);
		return;
	}
	if (task_files_collect_one(pid, drm_says_amd, &files))
		return;
	for (size_t i = 0; i < files.count; i++)
		if (!files.files[i].minor)
			kfd_unpause(files.files[i].fd);
	task_files_done(&files);
}

/* ---- the guard, until then ---- */

static int close_all_but(unsigned int a, unsigned int b)
{
	unsigned int low = a < b ? a : b, high = a < b ? b : a;
	int err = low ? (int)syscall(SYS_close_range, 0, low - 1, 0) : 0;

	if (!err && low + 1 < high)
		err = (int)syscall(SYS_close_range, low + 1, high - 1, 0);
	return err ? err : (int)syscall(SYS_close_range, high + 1, ~0u, 0);
}

static bool traces_one(pid_t criu, const struct ward *wards, size_t nr)
{
	bool found = false;

	for (size_t i = 0; !found && i < nr; i++)
		found = (pid_t)proc_status(wards[i].pid, "TracerPid", 10) == criu;
	return found;
}

/* @criu: a pidfd. @ready: gets a byte. */
static void guard(int criu, int ready, struct ward *wards, size_t nr)
{
	struct pollfd end = { .fd = criu, .events = POLLIN };
	int adj = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	pid_t parent = getppid();
	bool is_seen, has_ended = false, again = true;

	/* Without the capability for that it may be killed with criu. */
	if (adj >= 0)
		(void)!write(adj, NEVER_KILLED, strlen(NEVER_KILLED));
	prctl(PR_SET_NAME, "amdgpu-guard");
	setsid();
	(void)!chdir("/");
	if (close_all_but((unsigned int)criu, (unsigned int)ready))
		return;
	for (size_t i = 0; i < nr; i++)
		wards[i].pidfd = (int)syscall(SYS_pidfd_open, wards[i].pid, 0);
	/* While criu waits: later its tracer may have ended. Where /proc does not show it, criu's end alone counts. */
	is_seen = traces_one(parent, wards, nr);
	if (write(ready, "", 1) != 1)
		return;
	close(ready);
	while (!has_ended)
		has_ended = poll(&end, 1, is_seen ? LOOK_MSEC : -1) == 1 || (is_seen && !traces_one(parent, wards, nr));
	/* Another tracer is waited for. */
	for (int i = 0; again && i < SEIZE_TRIES; i++) {
		if (i)
			usleep(SEIZE_RETRY_USEC);
		again = false;
		for (struct ward *ward = wards; ward < wards + nr; ward++) {
			if (ward->is_seized || ward->pidfd < 0 || pidfd_has_ended(ward->pidfd))
				continue;
			/* What is attached to while the ward still lives is the ward. */
			if (ptrace(PTRACE_SEIZE, ward->pid, NULL, NULL))
				again |= errno == EPERM;
			else
				ward->is_seized = !pidfd_has_ended(ward->pidfd);
		}
	}
	for (size_t i = 0; i < nr; i++)
		if (wards[i].is_seized)
			let_run(wards[i].pid);
}

/* ---- in criu ---- */

/* Until it has closed what it has inherited: no process but criu may seem to have what the tasks have. Its pid or -errno. */
static pid_t start_guard(struct ward *wards, size_t nr)
{
	_cleanup_close_ int criu = (int)syscall(SYS_pidfd_open, getpid(), 0), in = -1;
	sigset_t all, before;
	int ready[2], err;
	ssize_t got;
	pid_t pid;
	char byte;

	if (criu < 0 || pipe2(ready, O_CLOEXEC))
		return -errno;
	in = ready[0];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (!pid) {
		guard(criu, ready[1], wards, nr);
		_exit(0);
	}
	err = pid < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ready[1]);
	if (err)
		return err;
	while ((got = read(in, &byte, 1)) < 0 && errno == EINTR)
		;
	if (got == 1)
		return pid;
	guard_end(pid);
	return -ENOSYS;
}

pid_t guard_start(const int *pids, size_t nr)
{
	_cleanup_free_ struct ward *wards = calloc(nr + 1, sizeof(*wards));
	pid_t pid = -ENOMEM;

	for (size_t i = 0; wards && i < nr; i++)
		wards[i] = (struct ward){ .pid = pids[i], .pidfd = -1 };
	if (wards)
		pid = start_guard(wards, nr);
	if (pid > 0)
		return pid;
	pr_warn("the guard of this dump cannot be started (%s): if criu is killed, the GPU queues stay stopped until "
		"\"amdgpu-checkpoint resume PID\" lets them run\n",
		strerror(-pid));
	return 0;
}

void guard_end(pid_t pid)
{
	pid_t ended;

	if (pid <= 0)
		return;
	/* It is asked for first: when it has ended and was waited for, its number may be another's. */
	ended = waitpid(pid, NULL, WNOHANG | __WALL);
	if (ended)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}
