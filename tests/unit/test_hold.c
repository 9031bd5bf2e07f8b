// SPDX-License-Identifier: GPL-2.0-only
/* Real children that are held: many threads, one that the kernel does not let go, signals on their way, and who is
 * whose child. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "stopped/hold.h"
#include "log_stub.h"

#define NR_THREADS 300

static struct shared {
	atomic_int ticks, nr_signals;
	atomic_bool is_ready;
} * shared;

static int share(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static void *run_thread(void *arg)
{
	for (;;) {
		shared->ticks++;
		usleep(arg ? 500 : 20000);
	}
	return NULL;
}

static void count_signal(int signal)
{
	shared->nr_signals++;
}

static pid_t start(void (*run)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, count_signal);
		run();
		shared->is_ready = true;
		for (;;)
			pause();
	}
	while (!shared->is_ready)
		usleep(1000);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

static void run_threads(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; i < NR_THREADS; i++)
		if (pthread_create(&thread, &attr, run_thread, i % 4 ? NULL : &attr))
			_exit(1);
}

static void run_nothing(void)
{
}

static bool stands_still(void)
{
	int before = shared->ticks;

	usleep(50000);
	return shared->ticks == before;
}

TEST(all_threads_stand_still_and_go_on)
{
	pid_t pid = start(run_threads);
	struct hold hold;

	assert_false(stands_still());
	assert_int_equal(hold_begin(pid, false, &hold), 0);
	assert_int_equal(hold.nr, NR_THREADS + 1);
	assert_int_equal(hold.tids[0], pid);
	assert_true(stands_still());
	hold_end(&hold);
	assert_false(stands_still());
	hold_end(&hold);
	end(pid);
}

/* It arrives, once. */
TEST(a_signal_on_its_way_is_not_lost)
{
	pid_t pid = start(run_nothing);

	for (int i = 1; i <= 50; i++) {
		struct hold hold;

		kill(pid, SIGUSR1);
		assert_int_equal(hold_begin(pid, false, &hold), 0);
		hold_end(&hold);
		for (int n = 0; shared->nr_signals < i && n < 2000; n++)
			usleep(1000);
		assert_int_equal(shared->nr_signals, i);
	}
	end(pid);
}

/* As Slurm does it before. */
TEST(a_process_that_is_stopped_is_held_and_stays_stopped)
{
	pid_t pid = start(run_threads);
	struct hold hold;
	int status;

	assert_int_not_equal(task_state(pid), 'T');
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(task_state(pid), 'T');
	assert_int_equal(hold_begin(pid, false, &hold), 0);
	assert_true(hold_is_stopped(&hold));
	hold_end(&hold);
	usleep(20000);
	assert_int_equal(task_state(pid), 'T');
	assert_true(stands_still());
	/* Somebody continues it while it is held, and it is so when it is let go. */
	assert_int_equal(hold_begin(pid, false, &hold), 0);
	kill(pid, SIGCONT);
	assert_false(hold_is_stopped(&hold));
	hold_end(&hold);
	usleep(20000);
	assert_false(stands_still());
	assert_int_equal(hold_begin(pid, false, &hold), 0);
	assert_false(hold_is_stopped(&hold));
	hold_end(&hold);
	end(pid);
}

/* Numbers wrap around. */
static void run_low_thread(void)
{
	pthread_t thread;
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");

	shared->nr_signals = f && fprintf(f, "%d", 300) > 0 && !fclose(f);
	if (pthread_create(&thread, NULL, run_thread, NULL))
		_exit(1);
}

TEST(a_thread_whose_number_is_below_that_of_its_process_is_held)
{
	pid_t pid = start(run_low_thread);
	bool may_choose = shared->nr_signals;
	struct hold hold;

	assert_int_equal(hold_begin(pid, false, &hold), 0);
	assert_int_equal(hold.nr, 2);
	assert_int_equal(hold.tids[0], pid);
	may_choose = may_choose && hold.tids[1] < pid;
	assert_true(stands_still());
	hold_end(&hold);
	assert_false(stands_still());
	end(pid);
	if (!may_choose)
		skip();
}

static void *end_at_once(void *arg)
{
	return NULL;
}

static void *make_threads(void *arg)
{
	for (;;) {
		pthread_t threads[8];

		for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
			pthread_create(&threads[i], NULL, end_at_once, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
			pthread_join(threads[i], NULL);
		shared->ticks++;
	}
	return NULL;
}

static void run_storm(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_threads, NULL))
		_exit(1);
}

TEST(threads_that_end_meanwhile_are_no_failure)
{
	pid_t pid = start(run_storm);

	for (int i = 0; i < 300; i++) {
		struct hold hold;

		log_clear();
		if (hold_begin(pid, false, &hold))
			fail_msg("try %d: %s", i, log_text);
		assert_int_equal(hold.tids[0], pid);
		hold_end(&hold);
	}
	end(pid);
}

static void *say_ready(void *arg)
{
	usleep(10000);
	shared->is_ready = true;
	return run_thread(NULL);
}

static void run_without_leader(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, say_ready, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
}

TEST(a_process_whose_first_thread_has_ended_is_refused_by_its_own_words)
{
	pid_t pid = start(run_without_leader);
	struct hold hold;

	log_clear();
	assert_int_equal(hold_begin(pid, false, &hold), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "its first thread has ended"));
	assert_int_equal(log_errors, 1);
	assert_false(stands_still());
	end(pid);
}

static void run_vfork(void)
{
	shared->is_ready = true;
	/* The child sleeps, and the parent waits for it where no signal reaches. */
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

TEST(a_thread_that_waits_in_vfork_is_named)
{
	pid_t pid = start(run_vfork);
	struct hold hold;

	usleep(20000);
	log_clear();
	assert_int_equal(hold_begin(pid, false, &hold), -EBUSY);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "cannot be interrupted"));
	end(pid);
}

/* Until it has ended, /proc shows it as running, and the thread as traced by it. */
TEST(a_tracer_that_was_killed_is_waited_for)
{
	pid_t pid = start(run_threads);

	for (int i = 0; i < 20; i++) {
		pid_t tracer = fork();
		struct hold hold;

		assert_true(tracer >= 0);
		if (!tracer) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			shared->nr_signals = hold_begin(pid, false, &hold) ? -1 : 1;
			for (;;)
				pause();
		}
		while (!shared->nr_signals)
			usleep(1000);
		assert_int_equal(shared->nr_signals, 1);
		shared->nr_signals = 0;
		assert_true(hold_is_traced(pid));
		kill(tracer, SIGKILL);
		assert_false(hold_is_traced(pid));
		log_clear();
		if (hold_begin(pid, false, &hold))
			fail_msg("try %d: %s", i, log_text);
		assert_true(stands_still());
		hold_end(&hold);
		waitpid(tracer, NULL, 0);
	}
	end(pid);
}

TEST(a_process_that_another_one_traces_is_refused)
{
	pid_t pid = start(run_nothing), tracer = fork();
	char expected[64];
	struct hold hold;

	assert_true(tracer >= 0);
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		shared->ticks = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? -1 : 1;
		for (;;)
			pause();
	}
	while (!shared->ticks)
		usleep(1000);
	if (shared->ticks < 0)
		skip();
	log_clear();
	assert_int_equal(hold_begin(pid, false, &hold), -EPERM);
	snprintf(expected, sizeof(expected), "process %d (test_hold) traces it", tracer);
	assert_non_null(strstr(log_text, expected));
	end(tracer);
	end(pid);
	log_clear();
	assert_int_equal(hold_begin(pid, false, &hold), -ESRCH);
	fail_clear();
}

static void run_child(void)
{
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!fork())
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

TEST(descendants_are_found_whatever_their_order)
{
	pid_t pid = start(run_child);
	int *pids = NULL;
	size_t nr = 0;

	for (int i = 0; nr < 3 && i < 200; i++) {
		free(pids);
		pids = NULL;
		nr = 0;
		assert_int_equal(array_add(pids, nr, pid), 0);
		assert_int_equal(processes_add_descendants(&pids, &nr), 0);
		usleep(5000);
	}
	assert_int_equal(nr, 3);
	for (size_t i = nr; i > 0; i--)
		kill(pids[i - 1], SIGKILL);
	waitpid(pid, NULL, 0);
	free(pids);
}

TEST(a_process_is_known_by_its_start)
{
	pid_t pid = start(run_nothing);
	uint64_t first = process_start(pid);

	assert_true(first > 0);
	assert_int_equal(process_start(pid), first);
	end(pid);
	assert_int_equal(process_start(pid), 0);
	assert_int_equal(task_state(pid), 0);
}

/* A directory stands in for a cgroup. */
static void make_cgroup(char path[64], const char *events)
{
	char name[128];
	FILE *f;

	snprintf(path, 64, "/tmp/hold.XXXXXX");
	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/cgroup.freeze", path);
	f = fopen(name, "w");
	assert_non_null(f);
	fputs("1\n", f);
	fclose(f);
	snprintf(name, sizeof(name), "%s/cgroup.events", path);
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(events, f);
	fclose(f);
}

static void remove_cgroup(const char *path)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/cgroup.freeze", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s/cgroup.events", path);
	unlink(name);
	assert_int_equal(rmdir(path), 0);
}

TEST(whoever_thaws_a_cgroup_meanwhile_is_noticed)
{
	char path[64];
	int watch;

	make_cgroup(path, "populated 1\nfrozen 1\n");
	assert_true(cgroup_is_frozen(path));
	watch = cgroup_watch(path);
	assert_true(watch >= 0);
	assert_false(cgroup_was_written(watch));
	assert_true(cgroup_is_frozen(path));
	assert_false(cgroup_was_written(watch));
	assert_int_equal(cgroup_freeze(path, false), 0);
	assert_true(cgroup_was_written(watch));
	assert_false(cgroup_was_written(watch));
	assert_false(cgroup_is_frozen(path));
	close(watch);
	assert_false(cgroup_was_written(-ENOENT));
	remove_cgroup(path);
	assert_true(cgroup_watch(path) < 0);
}

TEST(a_cgroup_is_frozen_when_all_in_it_stand_still)
{
	char path[64];

	make_cgroup(path, "populated 1\nfrozen 1\n");
	assert_true(cgroup_all_frozen(path));
	remove_cgroup(path);
	make_cgroup(path, "populated 1\nfrozen 0\n");
	assert_true(cgroup_is_frozen(path));
	assert_false(cgroup_all_frozen(path));
	remove_cgroup(path);
	assert_false(cgroup_all_frozen(path));
}

TEST(cgroups_above_end_below_the_root)
{
	char path[] = "/sys/fs/cgroup/a/b";

	assert_true(cgroup_above(path));
	assert_string_equal(path, "/sys/fs/cgroup/a");
	assert_false(cgroup_above(path));
}

UNIT_MAIN(share, NULL)
