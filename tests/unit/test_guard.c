// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guard of a dump, over real processes: tasks that have /dev/null open, which stands for /dev/kfd, a criu that
 * traces them, and its end. Who lets queues go has to be their tracer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "unit.h"
#include "checkpoint/internal.h"
#include "kernel/kernel.h"
#include "log_stub.h"

#define NR_TASKS 2
#define SECONDS	 10

/* What all processes see. */
static struct seen {
	atomic_int guard;		/* its pid, once criu has one */
	atomic_int nr_let_go[NR_TASKS]; /* by the tracer of the task */
	atomic_int nr_refused;		/* by somebody else */
	atomic_int nr_held;		/* that are suspended, by their tracer */
	atomic_int nr_signals;		/* of children's ends, in criu */
} * seen;

static pid_t tasks[NR_TASKS], criu;
static long fails; /* this system call fails */
static int marked = -1; /* the number of the task that has the mark of a suspend */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[5];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 5; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	errno = EAGAIN;
	return number == fails ? -1 : __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
}

bool device_is_kfd(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

bool device_is_render_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 5);
}

STUB(int, drm_is_amd, (int fd), 1)

static pid_t tracer_of(pid_t pid)
{
	char path[32], line[256];
	pid_t tracer = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer;
}

/* A file knows its owner by its flags. */
int kfd_unpause(int fd)
{
	int number = (fcntl(fd, F_GETFL) & O_APPEND) != 0;

	if (tracer_of(tasks[number]) == getpid())
		seen->nr_let_go[number]++;
	else
		seen->nr_refused++;
	return 0;
}

void suspend_hold_again(pid_t pid)
{
	for (int i = 0; i < NR_TASKS; i++)
		if (tasks[i] == pid && tracer_of(pid) == getpid())
			seen->nr_held++;
}

/* A task with one file, and one of a render node. */
static pid_t task_new(int number)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, (unsigned int)ready[1] - 1, 0);
		close_range((unsigned int)ready[1] + 1, ~0u, 0);
		if (open("/dev/null", O_RDWR | (number ? O_APPEND : 0)) < 0 || open("/dev/zero", O_RDWR) < 0 ||
		    (number == marked && memfd_create(TASK_MARK, 0) < 0) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static int setup(void **state)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* The guard, whose criu is gone, comes here. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	for (int i = 0; i < NR_TASKS; i++)
		tasks[i] = task_new(i);
	return seen == MAP_FAILED;
}

static int teardown(void **state)
{
	/* As long as it lives and traces them, they do not end. */
	if (criu > 0)
		kill(criu, SIGKILL);
	for (int i = 0; i < NR_TASKS; i++) {
		kill(tasks[i], SIGKILL);
		waitpid(tasks[i], NULL, 0);
	}
	munmap(seen, sizeof(*seen));
	return 0;
}

static void count_signal(int sig)
{
	seen->nr_signals++;
}

static bool seize_tasks(void)
{
	for (int i = 0; i < NR_TASKS; i++)
		if (ptrace(PTRACE_SEIZE, tasks[i], NULL, NULL))
			return false;
	return true;
}

/* Makes a criu with a guard; @traces: the tasks. It ends by @end, or waits. */
static void criu_new(bool traces, void (*end)(void))
{
	criu = fork();
	if (!criu) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, count_signal);
		/* A shell that starts the tests in the background has it ignored. */
		signal(SIGINT, SIG_DFL);
		if (traces && !seize_tasks())
			_exit(77);
		seen->guard = guard_start(tasks, NR_TASKS);
		/* Signals to pid 0 would reach all. */
		if (seen->guard <= 0)
			_exit(78);
		if (end)
			end();
		for (;;)
			pause();
	}
	for (int i = 0; i < SECONDS * 1000 && !seen->guard && !waitpid(criu, NULL, WNOHANG); i++)
		usleep(1000);
	if (!seen->guard && syscall(SYS_pidfd_open, getpid(), 0) < 0 && errno == ENOSYS)
		skip();
	assert_true(seen->guard > 0);
}

/* It ends by itself. */
static void assert_guard_ends(void)
{
	int status;

	alarm(SECONDS);
	assert_int_equal(waitpid(seen->guard, &status, __WALL), seen->guard);
	alarm(0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void assert_let_go(int first, int second)
{
	assert_guard_ends();
	assert_int_equal(seen->nr_let_go[0], first);
	assert_int_equal(seen->nr_let_go[1], second);
	assert_int_equal(seen->nr_refused, 0);
	for (int i = 0; i < NR_TASKS; i++)
		assert_true(tracer_of(tasks[i]) <= 0);
}

/* How it ended. */
static int wait_for_criu(void)
{
	pid_t pid = criu;
	int status;

	criu = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void end_by(int sig)
{
	kill(criu, sig);
	wait_for_criu();
}

UNIT_TEST(queues_run_when_criu_is_killed, setup, teardown)
{
	criu_new(true, NULL);
	assert_int_equal(tracer_of(tasks[0]), criu);
	end_by(SIGKILL);
	assert_let_go(1, 1);
	for (int i = 0; i < NR_TASKS; i++)
		assert_int_equal(kill(tasks[i], 0), 0);
}

static void *wait_for_disk(void *arg)
{
	while (arg)
		pause();
	return NULL;
}

/* As after SIGKILL while another thread is in a call that cannot be interrupted: the tracer has ended, the process not. */
static void leave_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_disk, seen))
		_exit(79);
	syscall(SYS_exit, 0);
}

static bool all_were_let_go(void)
{
	return seen->nr_let_go[0] && seen->nr_let_go[1];
}

UNIT_TEST(queues_run_though_a_thread_of_criu_does_not_end, setup, teardown)
{
	criu_new(true, leave_a_thread);
	for (int i = 0; i < SECONDS * 1000 && !all_were_let_go(); i++)
		usleep(1000);
	assert_true(all_were_let_go());
	assert_int_equal(kill(criu, 0), 0);
	end_by(SIGKILL);
	assert_let_go(1, 1);
}

/* A criu that the guard cannot see as their tracer, as where /proc is another pid namespace's, is waited for. */
UNIT_TEST(tasks_that_nobody_seems_to_trace_are_left_until_criu_ends, setup, teardown)
{
	criu_new(false, NULL);
	usleep(1200000);
	assert_int_equal(seen->nr_let_go[0] + seen->nr_let_go[1] + seen->nr_refused, 0);
	end_by(SIGKILL);
	assert_let_go(1, 1);
}

/* Its memory is not there: resume lets its queues run. */
UNIT_TEST(a_task_that_is_suspended_is_held_again, setup, teardown)
{
	marked = 0;
	kill(tasks[0], SIGKILL);
	waitpid(tasks[0], NULL, 0);
	tasks[0] = task_new(0);
	marked = -1;
	criu_new(true, NULL);
	end_by(SIGKILL);
	assert_guard_ends();
	assert_int_equal(seen->nr_let_go[0], 0);
	assert_int_equal(seen->nr_held, 1);
	assert_int_equal(seen->nr_let_go[1], 1);
}

static void call_exit(void)
{
	exit(1);
}

UNIT_TEST(queues_run_when_criu_ends_by_itself, setup, teardown)
{
	criu_new(true, call_exit);
	wait_for_criu();
	assert_let_go(1, 1);
}

/* To criu's process group and session. */
UNIT_TEST(what_ends_crius_group_leaves_the_guard, setup, teardown)
{
	criu_new(true, NULL);
	assert_int_equal(getsid(seen->guard), seen->guard);
	kill(seen->guard, SIGINT);
	kill(seen->guard, SIGTERM);
	kill(seen->guard, SIGHUP);
	end_by(SIGINT);
	assert_let_go(1, 1);
}

/* All files of the guard are pidfds, and so many. */
static bool has_pidfds(size_t wanted)
{
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0, nr_pidfds = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/fd", seen->guard);
	assert_int_equal(list_numbers(AT_FDCWD, path, &fds, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		char link[64], target[64] = "";

		snprintf(link, sizeof(link), "%s/%d", path, fds[i]);
		nr_pidfds += readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, "pidfd");
	}
	return nr == wanted && nr_pidfds == wanted;
}

/* Of criu and each task, by which it knows when they end. */
UNIT_TEST(the_guard_has_no_files_but_pidfds, setup, teardown)
{
	criu_new(true, NULL);
	for (int i = 0; i < SECONDS * 1000 && !has_pidfds(1 + NR_TASKS); i++)
		usleep(1000);
	assert_true(has_pidfds(1 + NR_TASKS));
	end_by(SIGKILL);
	assert_guard_ends();
}

/* criu has a handler that takes any child that ends for a task, and waits for all. */
static void end_well(void)
{
	guard_end(seen->guard);
	_exit(kill(seen->guard, 0) && waitpid(-1, NULL, WNOHANG | __WALL) < 0 && !seen->nr_signals ? 0 : 1);
}

UNIT_TEST(a_dump_that_ends_takes_the_guard_with_it, setup, teardown)
{
	int status;

	criu_new(false, end_well);
	status = wait_for_criu();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(seen->nr_let_go[0] + seen->nr_let_go[1] + seen->nr_refused, 0);
}

static void lose_guard(void)
{
	kill(seen->guard, SIGKILL);
	usleep(100000);
	/* As criu's handler asks. */
	if (waitpid(-1, NULL, WNOHANG) > 0 || seen->nr_signals)
		_exit(1);
	end_well();
}

UNIT_TEST(a_guard_that_is_killed_is_no_task_to_criu, setup, teardown)
{
	int status;

	criu_new(false, lose_guard);
	status = wait_for_criu();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_TEST(a_task_that_was_killed_is_left_out, setup, teardown)
{
	struct pollfd ends = { .events = POLLIN };

	criu_new(true, NULL);
	ends.fd = (int)syscall(SYS_pidfd_open, tasks[0], 0);
	kill(tasks[0], SIGKILL);
	/* It has ended when the guard looks. */
	assert_int_equal(poll(&ends, 1, SECONDS * 1000), 1);
	close(ends.fd);
	end_by(SIGKILL);
	assert_guard_ends();
	assert_int_equal(seen->nr_let_go[0], 0);
	assert_int_equal(seen->nr_let_go[1], 1);
}

/* As another criu, which is there at once. */
UNIT_TEST(another_tracer_is_waited_for, setup, teardown)
{
	int status;

	criu_new(false, NULL);
	if (ptrace(PTRACE_SEIZE, tasks[0], NULL, NULL))
		skip();
	end_by(SIGKILL);
	usleep(200000);
	assert_int_equal(seen->nr_let_go[0] + seen->nr_refused, 0);
	ptrace(PTRACE_INTERRUPT, tasks[0], NULL, NULL);
	waitpid(tasks[0], &status, __WALL);
	ptrace(PTRACE_DETACH, tasks[0], NULL, NULL);
	assert_let_go(1, 1);
}

static const long calls[] = { SYS_clone, SYS_pidfd_open, SYS_close_range };

/* In a program of its own, which has no other child. */
static void start_without(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		log_clear();
		fails = calls[i];
		if (guard_start(tasks, NR_TASKS) || !strstr(log_text, "the guard of this dump cannot be started") || log_errors ||
		    waitpid(-1, NULL, WNOHANG | __WALL) != -1)
			_exit(1 + (int)i);
	}
	guard_end(0);
	_exit(0);
}

UNIT_TEST(a_dump_goes_on_without_a_guard, setup, teardown)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		start_without();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_MAIN(NULL, NULL)
