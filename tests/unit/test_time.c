// SPDX-License-Identifier: GPL-2.0-only
/* Points of time for drivers, which know nothing of a task's time namespace. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "amdgpu_plugin_util.h"

#define SECOND	   1000000000ll
#define CANNOT	   77 /* the machine allows no time namespace */

static int set_offset(const char *offset)
{
	_cleanup_close_ int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, offset, strlen(offset)) > 0 ? 0 : -1;
}

static int enter(void)
{
	_cleanup_close_ int fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, CLONE_NEWTIME);
}

/* In a process of its own, whose clock is off as criu's tasks' are. Its exit status. */
static int look(const char *offset, int64_t want, uint64_t before)
{
	uint64_t now;

	if ((unshare(CLONE_NEWTIME) && unshare(CLONE_NEWUSER | CLONE_NEWTIME)) || set_offset(offset) || enter())
		return CANNOT;
	now = kernel_time_in(0, monotonic_offset_ns());
	if (monotonic_offset_ns() != want)
		return 1;
	return now < before || now > before + 60 * SECOND ? 2 : 0;
}

static void check(const char *offset, int64_t want)
{
	uint64_t before = kernel_time_in(0, 0);
	pid_t child = fork();
	int status;

	if (!child)
		_exit(look(offset, want, before));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	assert_int_equal(status, 0);
}

TEST(a_clock_that_is_ahead_is_set_right)
{
	check("monotonic 100000 0\n", 100000 * SECOND);
}

/* The kernel has the nanoseconds of what is below zero count up. */
TEST(a_clock_that_is_behind_is_set_right)
{
	check("monotonic -1 250000000\n", -SECOND + 250000000);
}

TEST(without_a_namespace_there_is_nothing_to_set_right)
{
	assert_int_equal(monotonic_offset_ns(), 0);
	assert_true(kernel_time_in(5 * SECOND, 0) > kernel_time_in(0, 0) + 4 * SECOND);
	assert_true(kernel_time_in(0, 3 * SECOND) < kernel_time_in(0, 0));
}

UNIT_MAIN(NULL, NULL)
