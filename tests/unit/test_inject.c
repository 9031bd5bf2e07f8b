// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls injected into a real child, whose tracer is another child and is killed wherever it may be. The task has to
 * come through with all its registers, its signals, and the call that it was in.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "unit.h"
#include "stopped/inject.h"
#include "stopped/memory.h"
#include "log_stub.h"

#define ROUNDS 300

/* What the test, the task and its tracer have in common. */
static struct shared {
	atomic_int go;		  /* the task may end */
	atomic_int ticks;	  /* of a task that runs */
	struct inject_thread own; /* what the tracer has seen */
	atomic_bool has_seen;
	atomic_int calls; /* injected ones that have returned */
	int error;	  /* of the tracer */
} * shared;

static unsigned int die_at; /* the tracer's n-th call of ptrace() is its last; 0: none */
static bool die_before;	    /* that call is not made */

long __real_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data)
{
	static unsigned int nr;
	bool last = die_at && ++nr == die_at;
	long r;

	if (last && die_before)
		kill(getpid(), SIGKILL);
	r = __real_ptrace(request, pid, address, data);
	if (last)
		kill(getpid(), SIGKILL);
	return r;
}

static int share(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

/* ---- tasks ---- */

/* Runs in user space with all registers in use; 0 when each has what it had. */
static int spin(void)
{
	uint64_t wrong = 0;

	__asm__ volatile(
		"mov $0x1111, %%rbx\n mov $0x2222, %%rcx\n mov $0x3333, %%rsi\n mov $0x4444, %%r8\n mov $0x5555, %%r9\n"
		"mov $0x6666, %%r10\n mov $0x7777, %%r11\n mov $0x8888, %%r12\n mov $0x9999, %%r13\n mov $0xaaaa, "
		"%%r14\n"
		"mov $0xbbbb, %%r15\n movq %%r15, %%xmm7\n"
		"1: lock incl %2\n cmpl $0, %1\n je 1b\n"
		"sub $0x1111, %%rbx\n or %%rbx, %0\n sub $0x2222, %%rcx\n or %%rcx, %0\n sub $0x3333, %%rsi\n or "
		"%%rsi, %0\n"
		"sub $0x4444, %%r8\n or %%r8, %0\n sub $0x5555, %%r9\n or %%r9, %0\n sub $0x6666, %%r10\n or %%r10, "
		"%0\n"
		"sub $0x7777, %%r11\n or %%r11, %0\n sub $0x8888, %%r12\n or %%r12, %0\n sub $0x9999, %%r13\n or "
		"%%r13, %0\n"
		"sub $0xaaaa, %%r14\n or %%r14, %0\n movq %%xmm7, %%rbx\n sub %%rbx, %%r15\n or %%r15, %0\n"
		: "+a"(wrong)
		: "m"(*(int *)&shared->go), "m"(*(int *)&shared->ticks)
		: "rbx", "rcx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm7", "memory", "cc");
	return wrong ? 1 : 0;
}

/* Sleeps by calls that the kernel goes on with (ERESTART_RESTARTBLOCK), until it may end. */
static int sleep_on(void)
{
	struct timespec length = { 0, 60000000 }, left;

	while (!shared->go)
		if (nanosleep(&length, &left))
			return 2;
	return 0;
}

/* Waits by a call that has signals of its own meanwhile. */
static int wait_with_mask(void)
{
	sigset_t none;
	struct timespec end = { 0, 60000000 };

	sigemptyset(&none);
	while (!shared->go)
		if (ppoll(NULL, 0, &end, &none))
			return 3;
	return 0;
}

static int (*const tasks[])(void) = { spin, sleep_on, wait_with_mask };

static pid_t start_task(int (*task)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		sigset_t mask, now;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		sigemptyset(&mask);
		sigaddset(&mask, SIGUSR2);
		sigprocmask(SIG_BLOCK, &mask, NULL);
		shared->ticks = 1;
		if (task())
			_exit(1);
		sigprocmask(SIG_BLOCK, NULL, &now);
		_exit(sigismember(&now, SIGUSR2) == 1 && !sigismember(&now, SIGUSR1) ? 0 : 2);
	}
	while (!shared->ticks)
		sched_yield();
	usleep(2000);
	return pid;
}

static void stop_task(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* Lets it go on to its end. */
static void finish_task(pid_t pid)
{
	int status;

	shared->go = 1;
	kill(pid, SIGCONT);
	alarm(20);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	alarm(0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- tracers ---- */

static int seize(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)INJECT_OPTIONS) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return -errno;
	return waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) ? 0 : -ECHILD;
}

/* @nr calls, and a mapping that stays if it is not killed before. */
static int use(struct inject *inject, int nr)
{
	static const uint64_t none[6];
	int err = inject_begin(inject);
	int64_t result;

	for (int i = 0; !err && i < nr; i++) {
		err = inject_call(inject, SYS_getppid, none, &result);
		if (!err && result != getpid() && result != getppid())
			err = -EPROTO;
		shared->calls++;
	}
	return err ? err : inject_end(inject);
}

static int trace(pid_t pid, int nr)
{
	struct inject inject;
	int err = seize(pid);

	if (!err)
		err = inject_look(pid, -1, &inject);
	if (err)
		return err;
	if (shared->has_seen && !inject_adopt(&inject, &shared->own) &&
	    memcmp(&inject.own.regs, &shared->own.regs, sizeof(inject.own.regs)))
		return -EBADMSG;
	shared->own = inject.own;
	shared->has_seen = true;
	err = use(&inject, nr);
	return err ? err : (ptrace(PTRACE_DETACH, pid, NULL, NULL) ? -errno : 0);
}

/* A tracer that dies at its n-th ptrace(), or when the test kills it. */
static pid_t start_tracer(pid_t pid, unsigned int at, bool before, int nr)
{
	pid_t tracer = fork();

	assert_true(tracer >= 0);
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		die_at = at;
		die_before = before;
		shared->error = trace(pid, nr);
		_exit(shared->error ? 1 : 0);
	}
	return tracer;
}

/* Whether it was killed. */
static bool end_tracer(pid_t tracer)
{
	int status;

	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFSIGNALED(status) || !WEXITSTATUS(status));
	return WIFSIGNALED(status);
}

static char state_of(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	return strrchr(line, ')')[2];
}

/* A dead tracer's task may be on its way out of a call. */
static void expect_stopped(pid_t pid)
{
	for (int i = 0; state_of(pid) != 'T' && i < 2000; i++)
		usleep(1000);
	assert_int_equal(state_of(pid), 'T');
}

/* ---- tests ---- */

TEST(a_task_comes_through_injected_calls)
{
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++) {
		pid_t pid = start_task(tasks[i]);

		stop_task(pid);
		assert_false(end_tracer(start_tracer(pid, 0, false, 5)));
		assert_int_equal(shared->calls, 5);
		expect_stopped(pid);
		finish_task(pid);
	}
}

/* As criu's main process does: the process is not stopped but for its tracer. */
TEST(a_task_need_not_be_stopped_when_nobody_dies)
{
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++) {
		pid_t pid = start_task(tasks[i]);

		assert_false(end_tracer(start_tracer(pid, 0, false, 5)));
		finish_task(pid);
	}
}

#define MAPS_SIZE 65536

static void maps_read(pid_t pid, char maps[MAPS_SIZE])
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(maps, 1, MAPS_SIZE - 1, f);
	assert_true(feof(f));
	maps[n] = 0;
	fclose(f);
}

static void try_death(int (*task)(void), unsigned int at, bool before, bool *ret_died)
{
	static char maps[MAPS_SIZE], now[MAPS_SIZE];
	pid_t pid = start_task(task);

	stop_task(pid);
	maps_read(pid, maps);
	*ret_died = end_tracer(start_tracer(pid, at, before, 2));
	expect_stopped(pid);
	assert_false(end_tracer(start_tracer(pid, 0, false, 2)));
	expect_stopped(pid);
	maps_read(pid, now);
	assert_string_equal(now, maps);
	finish_task(pid);
}

TEST(a_task_comes_through_the_death_of_its_tracer_at_each_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
		for (int before = 0; before < 2; before++) {
			bool died = true;
			unsigned int at;

			/* Those that sleep take their time: every third call is enough of them. */
			for (at = 1; died; at += i ? 3 : 1)
				try_death(tasks[i], at, before, &died);
			assert_in_range(at, 15, 200);
		}
}

/* In the middle of calls, wherever the kernel is. */
TEST(a_task_comes_through_the_death_of_its_tracer_at_any_moment)
{
	pid_t pid = start_task(spin);

	stop_task(pid);
	srand(7);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t tracer;

		shared->calls = 0;
		tracer = start_tracer(pid, 0, false, 1 << 30);
		while (shared->calls < 3 && !shared->error)
			sched_yield();
		for (volatile int wait = rand() % 20000; wait > 0;)
			wait--;
		kill(tracer, SIGKILL);
		assert_true(end_tracer(tracer));
		expect_stopped(pid);
	}
	assert_false(end_tracer(start_tracer(pid, 0, false, 2)));
	expect_stopped(pid);
	finish_task(pid);
}

TEST(arguments_go_to_the_task_and_come_back)
{
	pid_t pid = start_task(spin);
	struct inject inject;
	int fds[2], waiting = 0;
	char bytes[8] = "0123456", back[8];
	uint64_t write_args[6] = { 1, 0, 8 };

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(seize(pid), 0);
	assert_int_equal(inject_look(pid, -1, &inject), 0);
	assert_int_equal(inject_begin(&inject), 0);
	assert_int_equal(inject_write(&inject, INJECT_DATA, bytes, sizeof(bytes)), 0);
	assert_int_equal(memory_read(pid, inject.memory + INJECT_DATA, back, sizeof(back)), 0);
	assert_memory_equal(bytes, back, sizeof(bytes));
	assert_int_equal(inject_write(&inject, INJECT_ROOM - 4, bytes, sizeof(bytes)), -E2BIG);
	log_clear();
	fail_clear();
	/* An errno of the call itself has no message, and other calls can follow, whichever it is. */
	assert_int_equal(inject_kfd(&inject, _IOWR('x', 1, int), &waiting), -EBADF);
	write_args[0] = (uint64_t)-1;
	write_args[1] = inject.memory + INJECT_DATA;
	assert_int_equal(inject_call(&inject, SYS_write, write_args, NULL), -EBADF);
	assert_int_equal(inject_call(&inject, SYS_kill, (const uint64_t[6]){ INT_MAX }, NULL), -ESRCH);
	assert_true(!inject.is_lost && !fail_text()[0]);
	assert_int_equal(inject_end(&inject), 0);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	fail_clear();
	finish_task(pid);
}

/* The limit is what the process uses; it is named, and nothing of the thread is changed. */
TEST(a_task_at_its_limit_makes_no_calls_and_goes_on)
{
	static const struct {
		int resource;
		const char *name;
	} limits[] = { { RLIMIT_AS, "RLIMIT_AS, 4096: raise" }, { RLIMIT_DATA, "RLIMIT_DATA, 4096: raise" } };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (size_t j = 0; j < ARRAY_SIZE(tasks); j++) {
			static char maps[MAPS_SIZE], now[MAPS_SIZE];
			pid_t pid = start_task(tasks[j]);
			struct rlimit before;
			struct inject inject, again;

			maps_read(pid, maps);
			assert_int_equal(prlimit(pid, limits[i].resource, NULL, &before), 0);
			assert_int_equal(
				prlimit(pid, limits[i].resource, &(struct rlimit){ 4096, before.rlim_max }, NULL), 0);
			assert_int_equal(seize(pid), 0);
			assert_int_equal(inject_look(pid, -1, &inject), 0);
			assert_int_equal(inject_begin(&inject), -ENOMEM);
			assert_non_null(strstr(fail_text(), limits[i].name));
			fail_clear();
			assert_int_equal(inject_look(pid, -1, &again), 0);
			assert_int_equal(again.own.blocked, inject.own.blocked);
			assert_memory_equal(&again.own.regs, &inject.own.regs, sizeof(inject.own.regs));
			/* With the limit raised, calls are made. */
			assert_int_equal(prlimit(pid, limits[i].resource, &before, NULL), 0);
			assert_int_equal(inject_begin(&again), 0);
			assert_int_equal(inject_end(&again), 0);
			assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
			maps_read(pid, now);
			assert_string_equal(now, maps);
			finish_task(pid);
		}
}

TEST(the_limit_that_an_errno_tells_of_is_named)
{
	pid_t pid = start_task(spin);
	struct inject inject = { .tid = pid };

	assert_int_equal(inject_fail(&inject, -EMFILE, "have the mark"), -EMFILE);
	assert_non_null(strstr(fail_text(), "RLIMIT_NOFILE"));
	fail_clear();
	assert_int_equal(inject_fail(&inject, -EACCES, "have the mark"), -EACCES);
	assert_null(strstr(fail_text(), "RLIMIT"));
	fail_clear();
	finish_task(pid);
}

static void count(void *arg)
{
	(*(int *)arg)++;
}

TEST(a_call_that_does_not_come_back_is_asked_after)
{
	pid_t pid = start_task(spin);
	struct inject inject;
	int nr = 0;

	assert_int_equal(seize(pid), 0);
	assert_int_equal(inject_look(pid, -1, &inject), 0);
	inject.ask = count;
	inject.arg = &nr;
	assert_int_equal(inject_begin(&inject), 0);
	nr = 0;
	assert_int_equal(inject_call(&inject, SYS_poll, (const uint64_t[6]){ 0, 0, 1000 }, NULL), 0);
	assert_true(nr > 0);
	assert_int_equal(inject_end(&inject), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	finish_task(pid);
}

TEST(a_task_that_is_killed_meanwhile_is_said_to_have_ended)
{
	pid_t pid = start_task(spin);
	struct inject inject;
	static const uint64_t none[6];

	assert_int_equal(seize(pid), 0);
	assert_int_equal(inject_look(pid, -1, &inject), 0);
	assert_int_equal(inject_begin(&inject), 0);
	kill(pid, SIGKILL);
	usleep(10000);
	log_clear();
	assert_int_equal(inject_call(&inject, SYS_getpid, none, NULL), -ESRCH);
	assert_true(inject.is_lost);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "has ended"));
	log_clear();
	assert_int_equal(inject_begin(&inject), -ESRCH);
	assert_non_null(strstr(log_text, "has ended"));
	log_clear();
	assert_int_equal(inject_look(pid, -1, &inject), -ESRCH);
	assert_non_null(strstr(log_text, "has ended"));
	waitpid(pid, NULL, __WALL);
}

TEST(a_task_whose_memory_cannot_be_reached_makes_no_more_calls)
{
	pid_t pid = start_task(spin);
	struct inject inject;
	const uint64_t word = 0;

	assert_int_equal(seize(pid), 0);
	assert_int_equal(inject_look(pid, -1, &inject), 0);
	assert_int_equal(inject_begin(&inject), 0);
	assert_int_equal(memory_write(pid, 0, &word, sizeof(word)), -EFAULT);
	fail_clear();
	kill(pid, SIGKILL);
	usleep(10000);
	log_clear();
	assert_int_equal(inject_write(&inject, INJECT_DATA, &word, sizeof(word)), -ESRCH);
	assert_true(inject.is_lost);
	assert_non_null(strstr(log_text, "has ended"));
	waitpid(pid, NULL, __WALL);
	log_clear();
	assert_int_equal(inject_write(&inject, INJECT_DATA, &word, sizeof(word)), -ESRCH);
	assert_non_null(strstr(log_text, "has ended"));
}

UNIT_MAIN(share, NULL)
