// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of stopped tasks, of a real child that is traced: /dev/null stands for the KFD, /dev/zero for a render
 * node of AMD, /dev/full for one of another driver.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "unit.h"
#include "kernel/machine.h"
#include "kernel/tasks.h"
#include "log_stub.h"

#define NR_FILES 300u
#define NULL_DEVICE makedev(1, 3)
#define ZERO_DEVICE makedev(1, 5)
#define FULL_DEVICE makedev(1, 7)

static int driver_error; /* what asking a render node gives; 0: its driver */

bool device_is_kfd(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == NULL_DEVICE;
}

bool device_is_render_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_rdev == ZERO_DEVICE || st->st_rdev == FULL_DEVICE);
}

/* What the kernel says of a task's second file: an error, or a device that it is not. */
static int statx_error;
static bool statx_lies;

int __real_statx(int dir, const char *path, int flags, unsigned int mask, struct statx *to);
int __wrap_statx(int dir, const char *path, int flags, unsigned int mask, struct statx *to)
{
	const char *name = strrchr(path, '/');
	bool is_second = name && (!strcmp(name, "/2") || !strcmp(name, "/3"));

	/* With any of them missing a file system may be asked. */
	assert_int_equal(mask, 0);
	assert_true(flags & AT_STATX_DONT_SYNC && flags & AT_NO_AUTOMOUNT);
	errno = statx_error;
	if (is_second && statx_error)
		return -1;
	if (__real_statx(dir, path, flags, mask, to))
		return -1;
	if (is_second && statx_lies)
		to->stx_rdev_minor = minor(ZERO_DEVICE);
	return 0;
}

/* Each file that is asked for its driver waits until so many are asked. */
static _Atomic unsigned int nr_asked, wait_for_asked, nr_signalled; /* nr_signalled: in a thread that takes signals */

static int is_amd(int fd)
{
	double end = monotonic_seconds() + 10;
	struct stat st;
	sigset_t mask;

	nr_asked++;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	nr_signalled += gettid() != getpid() && !sigismember(&mask, SIGALRM);
	while (nr_asked < wait_for_asked && monotonic_seconds() < end)
		usleep(1000);
	if (nr_asked < wait_for_asked || fstat(fd, &st)) {
		wait_for_asked = 0; /* the others need not wait, too */
		return -ETIMEDOUT;
	}
	return driver_error ? driver_error : st.st_rdev == ZERO_DEVICE;
}

/* Opens @nr files of the node, each with a second descriptor. */
static void open_files(const char *path, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (dup(open(path, O_RDWR | (i % 2 ? O_NONBLOCK : 0))) < 0)
			_exit(1);
}

/* A child that has files and waits; it is traced by the caller. */
static pid_t start_child(void (*open_all)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, (unsigned int)ready[1] - 1, 0);
		close_range((unsigned int)ready[1] + 1, ~0u, 0);
		open_all();
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void many_files(void)
{
	open_files("/dev/null", 5);
	open_files("/dev/zero", NR_FILES);
	open_files("/dev/full", 3);
	if (open("/dev/null", O_PATH) < 0 || open("/dev/zero", O_PATH) < 0)
		_exit(1);
}

/* How many files of a minor, 0 for the KFD's. */
static size_t count(const struct task_files *files, uint32_t minor_number)
{
	size_t nr = 0;

	for (size_t i = 0; i < files->count; i++)
		nr += files->files[i].minor == minor_number;
	return nr;
}

TEST(each_open_file_is_found_once)
{
	pid_t pid = start_child(many_files);
	struct task_files files;
	struct task_file *found;
	int other, zero_minor = (int)minor(ZERO_DEVICE);

	if (pid < 0)
		skip();
	assert_int_equal(task_files_collect(is_amd, &files), 0);
	assert_int_equal(files.nr_pids, 1);
	assert_int_equal(files.count, 5 + NR_FILES);
	assert_int_equal(count(&files, 0), 5);
	assert_int_equal(count(&files, (uint32_t)zero_minor), NR_FILES);
	for (size_t i = 0; i < files.count; i++) {
		assert_int_equal(files.files[i].pid, pid);
		assert_true(!i || files.files[i].number > files.files[i - 1].number);
		assert_int_equal(task_files_find(&files, files.files[i].fd, &found), 0);
		assert_ptr_equal(found, &files.files[i]);
	}
	other = open("/dev/zero", O_RDWR | O_CLOEXEC);
	assert_int_equal(task_files_find(&files, other, &found), 0);
	assert_null(found);
	close(other);
	assert_true(task_files_has(&files, pid, (uint32_t)zero_minor));
	assert_false(task_files_has(&files, pid + 1, (uint32_t)zero_minor));
	task_files_done(&files);
	end_child(pid);
}

/* The driver may take 30 ms for each, one after the other. */
TEST(all_files_are_asked_for_their_driver_at_once)
{
	pid_t pid = start_child(many_files);
	struct task_files files = { 0 };
	int err;

	if (pid < 0)
		skip();
	nr_asked = 0;
	wait_for_asked = NR_FILES + 3;
	err = task_files_collect(is_amd, &files);
	wait_for_asked = 0;
	assert_int_equal(err, 0);
	assert_int_equal(nr_asked, NR_FILES + 3);
	assert_int_equal(nr_signalled, 0);
	assert_int_equal(files.count, 5 + NR_FILES);
	task_files_done(&files);
	/* In a process that has only one thread of its own, one after the other. */
	assert_int_equal(task_files_collect_one(pid, is_amd, &files), 0);
	assert_int_equal(files.count, 5 + NR_FILES);
	task_files_done(&files);
	end_child(pid);
}

static _Atomic unsigned int nr_running, most_running;

static void *count_running(void *item)
{
	unsigned int now = ++nr_running, most = most_running;

	while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now))
		;
	usleep(300000);
	nr_running--;
	++*(unsigned char *)item;
	return NULL;
}

/* A thread for each would take all the memory, or all the pids, of a small cgroup. */
TEST(thousands_of_files_do_not_mean_thousands_of_threads)
{
	unsigned char items[2000] = { 0 };

	all_at_once(items, ARRAY_SIZE(items), 1, count_running);
	assert_in_range(most_running, 2, 512);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		assert_int_equal(items[i], 1);
}

TEST(a_node_that_does_not_say_its_driver_is_an_error)
{
	pid_t pid = start_child(many_files);
	struct task_files files;
	int err;

	if (pid < 0)
		skip();
	log_clear();
	driver_error = -ENODEV;
	err = task_files_collect(is_amd, &files);
	driver_error = 0;
	assert_int_equal(err, -ENODEV);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "for its driver: No such device"));
	end_child(pid);
}

static size_t collect_with(int error, bool lies, int *ret)
{
	pid_t pid = start_child(many_files);
	struct task_files files = { 0 };
	size_t nr;

	if (pid < 0)
		skip();
	statx_error = error;
	statx_lies = lies;
	*ret = task_files_collect(is_amd, &files);
	statx_error = 0;
	statx_lies = false;
	nr = files.count;
	task_files_done(&files);
	end_child(pid);
	return nr;
}

/* A file system of FUSE, or of a network, has no device of ours. */
TEST(a_file_system_that_does_not_answer_is_passed_over)
{
	static const int errors[] = { EACCES, ENOTCONN, ESTALE, EIO, ETIMEDOUT };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		assert_int_equal(collect_with(errors[i], false, &err), 4 + NR_FILES);
		assert_int_equal(err, 0);
	}
	collect_with(ENOMEM, false, &err);
	assert_int_equal(err, -ENOMEM);
}

/* Somebody with the same table of files may have changed it in between. */
TEST(what_was_taken_is_looked_at)
{
	int err;

	assert_int_equal(collect_with(0, true, &err), 5 + NR_FILES);
	assert_int_equal(err, 0);
}

/* As criu, which is killed while it waits. */
static void add_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	timer_t id;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &id))
		_exit(1);
}

static void *thread_with_timer(void *arg)
{
	add_timer();
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	return NULL;
}

TEST(a_timer_of_a_thread_that_has_ended_is_found)
{
	pid_t ended = 0;
	pthread_t thread;

	if (access("/proc/self/timers", R_OK))
		skip();
	assert_int_equal(task_timer_of_ended_thread(getpid()), 0);
	add_timer();
	assert_int_equal(task_timer_of_ended_thread(getpid()), 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_with_timer, &ended), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(ended > 0);
	assert_int_equal(task_timer_of_ended_thread(getpid()), ended);
	assert_int_equal(task_timer_of_ended_thread(-1), 0);
}

TEST(stopped_tasks_end_with_their_tracer)
{
	int pipe_fds[2], status, unused[2];
	pid_t tracer;

	assert_int_equal(pipe(pipe_fds), 0);
	tracer = fork();
	assert_true(tracer >= 0);
	if (!tracer) {
		pid_t pid = fork();

		if (!pid) {
			/* Holds the pipe open as long as it lives. */
			close(pipe_fds[0]);
			for (;;)
				pause();
		}
		close(pipe_fds[1]);
		if (ptrace(PTRACE_SEIZE, pid, 0, 0))
			_exit(77);
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		waitpid(pid, &status, __WALL);
		_exit(tasks_end_with_tracer() ? 1 : 0);
	}
	close(pipe_fds[1]);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	/* A task that lives on keeps the test here. */
	alarm(30);
	assert_int_equal(read(pipe_fds[0], unused, sizeof(unused)), 0);
	alarm(0);
	close(pipe_fds[0]);
}

static pid_t start_asker(int file, int other, pid_t child)
{
	pid_t asker = fork(), holder = -1;
	uint32_t zero = minor(ZERO_DEVICE), full = minor(FULL_DEVICE);

	assert_true(asker >= 0);
	if (!asker)
		_exit(task_file_holder(getppid(), file, zero, &holder) || holder != child ||
		      task_file_holder(getppid(), other, zero, &holder) || holder ||
		      task_file_holder(getppid(), file, full, &holder) || holder);
	return asker;
}

/* A forked child has one of two files. */
TEST(another_process_with_the_file_is_found)
{
	int file = open("/dev/zero", O_RDWR), other, status;
	pid_t child = fork();

	assert_true(file >= 0 && child >= 0);
	while (!child)
		pause();
	other = open("/dev/zero", O_RDWR);
	assert_true(other >= 0);
	assert_true(waitpid(start_asker(file, other, child), &status, 0) > 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(file);
	close(other);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static int wait_for_end(void *arg)
{
	pause();
	return 0;
}

/* With the same descriptors, with the same memory, and with neither. */
TEST(processes_that_share_memory_or_descriptors_are_found)
{
	static const int flags[] = { CLONE_FILES, CLONE_VM, 0 };
	static char stacks[3][65536];

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pid_t child = clone(wait_for_end, stacks[i] + sizeof(stacks[i]), flags[i] | SIGCHLD, NULL);
		_cleanup_free_ int *pids = NULL;
		size_t nr = 0;

		assert_true(child > 0);
		assert_int_equal(task_list_sharers(getpid(), &pids, &nr), 0);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(nr, flags[i] ? 1 : 0);
		assert_true(!nr || pids[0] == child);
	}
}

UNIT_MAIN(NULL, NULL)
