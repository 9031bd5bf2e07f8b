// SPDX-License-Identifier: GPL-2.0-only
/* What follow does when cgroups are frozen and thawed: a machine that is a table, whose time goes on when follow
 * sleeps. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "kernel/kernel.h"
#include "log_stub.h"
#include "stopped/stopped.h"
#include "tool/commands.h"

#define ABOVE "/sys/fs/cgroup/engine"
#define OWN   ABOVE "/job"
#define GPU   10 /* pids */
#define OTHER 11

static struct machine {
	double now;
	bool frozen[2];		/* above, own */
	bool has_gpu, is_whole; /* is_whole: all processes stand still when they are frozen */
	char states[2]; /* of both processes; OTHER uses the GPU with other_has_gpu */
	bool other_has_gpu, asks_for_stops;
	enum suspend_state state;
	const char *follows;
	unsigned int nr_outs, nr_backs, nr_failures; /* of the next calls so many fail */
	unsigned int nr_quiet, nr_in_line, nr_joins, nr_leaves; /* nr_in_line: resumes with the last place that was taken */
	size_t nr_pids;				     /* of the last call */
	bool by_stop;
	void (*script)(unsigned int tenths);
} machine;

static int lock_fd = -1;

/* ---- what follow calls ---- */

STUB(double, __wrap_monotonic_seconds, (void), machine.now)

int __wrap_usleep(useconds_t usec)
{
	machine.now += usec / 1e6;
	machine.script((unsigned int)(machine.now * 10 + 0.5));
	return 0;
}

STUB(int, __wrap_open, (const char *path, int flags, ...), dup(lock_fd))

int task_list_kfd(int **ret, size_t *ret_nr)
{
	if (machine.other_has_gpu)
		assert_int_equal(array_add(*ret, *ret_nr, OTHER), 0);
	return machine.has_gpu ? array_add(*ret, *ret_nr, GPU) : 0;
}

STUB(char, task_state, (pid_t pid), machine.states[pid != GPU])
STUB(bool, hold_is_traced, (pid_t pid), false)

STUB(int, task_in_initial_pid_ns, (void), 1)
STUB(bool, cgroup_is_v2, (const char *path), true)

bool cgroup_of(pid_t pid, char path[PATH_MAX])
{
	assert_in_range(pid, GPU, OTHER);
	strcpy(path, OWN);
	return true;
}

bool cgroup_above(char *path)
{
	*strrchr(path, '/') = '\0';
	return strcmp(path, "/sys/fs/cgroup");
}

STUB(bool, cgroup_is_frozen, (const char *path), machine.frozen[!strcmp(path, OWN)])
STUB(bool, cgroup_all_frozen, (const char *path), machine.is_whole)

int cgroup_processes(const char *path, bool below, int **ret, size_t *ret_nr)
{
	assert_true(below);
	assert_int_equal(array_add(*ret, *ret_nr, GPU), 0);
	return array_add(*ret, *ret_nr, OTHER);
}

int suspend_list(uint64_t id, int **ret, size_t *ret_nr)
{
	return machine.state == STATE_RUNNING ? 0 : array_add(*ret, *ret_nr, GPU);
}

int suspend_ask(pid_t pid, struct suspend_info *ret)
{
	*ret = (struct suspend_info){ .may_run = !machine.frozen[0] && !machine.frozen[1] && machine.states[0] != 'T' };
	if (pid == GPU && machine.state != STATE_RUNNING) {
		ret->state = machine.state;
		strcpy(ret->follows, machine.follows);
	}
	return 0;
}

int suspend_in_child(const struct suspend_work *work)
{
	unsigned int *calls = work->verb == SUSPEND ? &machine.nr_outs : &machine.nr_backs;

	(*calls)++;
	machine.nr_quiet += work->quiet;
	machine.nr_pids = work->target.nr;
	machine.nr_in_line += work->verb != SUSPEND && work->target.waiter && work->target.waiter->since == machine.nr_joins;
	machine.by_stop = work->target.by_stop;
	assert_int_equal(work->target.pids[0], GPU);
	if (machine.nr_failures) {
		machine.nr_failures--;
		return TOOL_FAIL;
	}
	machine.state = work->verb == SUSPEND ? STATE_SUSPENDED : STATE_RUNNING;
	machine.follows = work->verb == SUSPEND ? (!strcmp(work->target.follows, OWN) ? OWN : ABOVE) : "";
	return TOOL_GOOD;
}

void suspend_waiter_join(struct suspend_waiter *waiter)
{
	if (!waiter->since)
		waiter->since = ++machine.nr_joins;
}

void suspend_waiter_leave(struct suspend_waiter *waiter)
{
	machine.nr_leaves += waiter->since != 0;
}

int cgroup_path(const char *cgroup, char path[PATH_MAX])
{
	strcpy(path, cgroup);
	return TOOL_GOOD;
}

STUB(void, print_text, (const char *fmt, ...), /* nothing */)
STUB(int, print_finish, (int status), status)
STUB(bool, print_is_json, (void), false)

int complain(const char *fmt, ...)
{
	fail_msg("%s", fmt);
	return TOOL_FAIL;
}

STUB(int, complain_failure, (void), TOOL_FAIL)

/* ---- runs ---- */

static void prepare(void (*script)(unsigned int))
{
	machine = (struct machine){ .has_gpu = true, .is_whole = true, .states = "SS", .follows = "", .script = script };
}

static void follow(const char *cgroup)
{
	const struct arguments arguments = { .cgroup = cgroup, .stopped = machine.asks_for_stops };

	lock_fd = memfd_create("lock", MFD_CLOEXEC);
	assert_int_equal(command_follow(&arguments), TOOL_GOOD);
	close(lock_fd);
}

static void end_after(unsigned int tenths, unsigned int end)
{
	if (tenths >= end)
		raise(SIGTERM);
}

static void freeze_and_thaw(unsigned int tenths)
{
	if (tenths == 5)
		machine.frozen[0] = true;
	if (tenths == 20) {
		assert_int_equal(machine.nr_outs, 1);
		assert_int_equal(machine.nr_pids, 2);
		assert_int_equal(machine.nr_backs, 0);
		assert_string_equal(machine.follows, ABOVE);
		machine.frozen[0] = false;
	}
	end_after(tenths, 35);
}

TEST(what_is_frozen_is_suspended_once_and_resumed_once)
{
	prepare(freeze_and_thaw);
	follow(ABOVE);
	assert_int_equal(machine.nr_outs, 1);
	assert_int_equal(machine.nr_backs, 1);
	assert_int_equal(machine.nr_pids, 1);
	assert_int_equal(machine.state, STATE_RUNNING);
}

static void freeze_for_a_moment(unsigned int tenths)
{
	machine.frozen[1] = tenths == 5 || tenths == 6;
	end_after(tenths, 20);
}

static void freeze_at_once(unsigned int tenths)
{
	machine.frozen[1] = true;
	end_after(tenths, 20);
}

TEST(what_is_frozen_for_a_moment_or_elsewhere_is_left_alone)
{
	prepare(freeze_for_a_moment);
	follow(ABOVE);
	assert_int_equal(machine.nr_outs, 0);
	prepare(freeze_at_once);
	follow("/sys/fs/cgroup/eng");
	follow("/sys/fs/cgroup/another");
	machine.has_gpu = false;
	follow(ABOVE);
	prepare(freeze_at_once);
	machine.is_whole = false;
	follow(ABOVE);
	assert_int_equal(machine.nr_outs + machine.nr_backs, 0);
	prepare(freeze_at_once);
	follow(OWN);
	assert_int_equal(machine.nr_outs, 1);
	assert_string_equal(machine.follows, OWN);
}

static void stop_and_continue(unsigned int tenths)
{
	if (tenths == 5)
		machine.states[0] = 'T';
	if (tenths == 20) {
		assert_int_equal(machine.nr_outs, 1);
		assert_int_equal(machine.nr_pids, machine.states[1] == 'T' ? 2 : 1);
		assert_int_equal(machine.nr_backs, 0);
		assert_true(machine.by_stop);
		assert_string_equal(machine.follows, OWN);
		machine.states[0] = 'S';
	}
	end_after(tenths, 35);
}

/* What has left the process group that the scheduler signals may run, unless it uses the GPU. */
TEST(what_a_signal_stops_is_suspended_once_and_resumed_once)
{
	for (int other = 0; other < 2; other++) {
		prepare(stop_and_continue);
		machine.states[1] = other ? 'T' : 'S';
		machine.asks_for_stops = true;
		follow(ABOVE);
		assert_int_equal(machine.nr_outs, 1);
		assert_int_equal(machine.nr_backs, 1);
		assert_int_equal(machine.state, STATE_RUNNING);
	}
}

static void stop_for_long(unsigned int tenths)
{
	machine.states[0] = tenths >= 5 ? 'T' : 'S';
	end_after(tenths, 30);
}

static void stop_for_a_moment(unsigned int tenths)
{
	machine.states[0] = tenths == 5 || tenths == 6 ? 'T' : 'S';
	end_after(tenths, 30);
}

TEST(what_a_signal_stops_for_a_moment_or_unasked_or_elsewhere_or_in_part_is_left_alone)
{
	prepare(stop_for_long);
	follow(ABOVE);
	machine.asks_for_stops = true;
	follow("/sys/fs/cgroup/another");
	machine.other_has_gpu = true;
	follow(ABOVE);
	/* By hand, which stops it as well for a while. */
	machine.other_has_gpu = false;
	machine.state = STATE_SUSPENDED;
	follow(ABOVE);
	prepare(stop_for_a_moment);
	machine.asks_for_stops = true;
	follow(ABOVE);
	assert_int_equal(machine.nr_outs + machine.nr_backs, 0);
}

static void freeze_and_thaw_early(unsigned int tenths)
{
	machine.frozen[0] = tenths >= 5 && tenths < 20;
	end_after(tenths, 40);
}

TEST(what_was_suspended_by_hand_is_left_alone)
{
	prepare(freeze_and_thaw_early);
	machine.state = STATE_SUSPENDED;
	follow(ABOVE);
	assert_int_equal(machine.nr_outs + machine.nr_backs, 0);
}

static void end_late(unsigned int tenths)
{
	end_after(tenths, 80);
}

TEST(what_another_command_has_left_half_way_is_resumed_after_a_while)
{
	prepare(end_late);
	machine.state = STATE_HALF;
	follow(ABOVE);
	assert_int_equal(machine.nr_backs, 1);
	assert_int_equal(machine.state, STATE_RUNNING);
}

/* Its unit has another --cgroup now. */
TEST(what_was_suspended_for_a_cgroup_elsewhere_is_resumed_too)
{
	prepare(end_late);
	machine.state = STATE_SUSPENDED;
	machine.follows = ABOVE;
	follow("/sys/fs/cgroup/another");
	assert_int_equal(machine.nr_backs, 1);
}

/* Whoever is thawed later has its memory later. */
TEST(what_is_resumed_again_and_again_keeps_its_place_in_the_line)
{
	prepare(end_late);
	machine.state = STATE_SUSPENDED;
	machine.follows = ABOVE;
	machine.nr_failures = 2;
	follow(ABOVE);
	assert_int_equal(machine.nr_backs, 3);
	assert_int_equal(machine.nr_in_line, 3);
	assert_int_equal(machine.nr_joins, 1);
	assert_int_equal(machine.nr_leaves, 1);
}

static void freeze_for_long(unsigned int tenths)
{
	machine.frozen[1] = true;
	end_after(tenths, 36000);
}

TEST(what_fails_again_and_again_is_tried_every_five_minutes_and_told_of_as_often)
{
	prepare(freeze_for_long);
	machine.nr_failures = 1000;
	follow(ABOVE);
	assert_in_range(machine.nr_outs, 15, 22);
	assert_in_range(machine.nr_quiet, 6, 8);
}

static void only_end(unsigned int tenths)
{
	end_after(tenths, 20);
}

TEST(what_a_killed_follow_has_left_is_completed)
{
	static const enum suspend_state states[] = { STATE_HALF, STATE_SUSPENDED, STATE_GONE };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		prepare(only_end);
		machine.state = states[i];
		machine.follows = ABOVE;
		follow(ABOVE);
		assert_int_equal(machine.nr_backs, 1);
		assert_int_equal(machine.state, STATE_RUNNING);
	}
	/* Frozen still: what is half way is suspended anew, what has ended is forgotten, the rest waits. */
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		prepare(freeze_at_once);
		machine.frozen[1] = true;
		machine.state = states[i];
		machine.follows = ABOVE;
		machine.has_gpu = states[i] != STATE_GONE;
		follow(ABOVE);
		assert_int_equal(machine.nr_backs, states[i] != STATE_SUSPENDED);
		assert_int_equal(machine.nr_outs, states[i] == STATE_HALF);
	}
}

static void freeze_and_thaw_late(unsigned int tenths)
{
	machine.frozen[0] = tenths < 100;
	end_after(tenths, 140);
}

/* Such as a resume whose memory is another's. */
TEST(what_fails_is_tried_again_after_a_while)
{
	prepare(freeze_and_thaw_late);
	machine.frozen[0] = true;
	machine.nr_failures = 2;
	follow(ABOVE);
	assert_int_equal(machine.nr_outs, 3);
	assert_int_equal(machine.nr_backs, 1);
	prepare(freeze_at_once);
	machine.nr_failures = 100;
	follow(ABOVE);
	assert_int_equal(machine.nr_outs, 1);
}

UNIT_MAIN(NULL, NULL)
