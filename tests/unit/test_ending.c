// SPDX-License-Identifier: GPL-2.0-only
/* Whether criu ends with a failure is decided at its end: by whether the task lives. */
#include <stdlib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "host/criu.h"

static bool can_stay_loaded;

/* A program cannot be loaded as a library. */
void *__wrap_dlopen(const char *path, int flags)
{
	return can_stay_loaded ? (void *)(uintptr_t)path : NULL;
}

static pid_t task_new(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

/* The status of a program that has left a task so, and ends well; @kill_it: it kills the task last. */
static int status_of(pid_t task, bool kill_it)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		criu_fail_at_exit(task);
		if (kill_it)
			kill(task, SIGKILL);
		exit(EXIT_SUCCESS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_task_that_lives_is_a_failure)
{
	pid_t task = task_new();

	can_stay_loaded = true;
	assert_int_equal(status_of(task, false), EXIT_FAILURE);
	kill(task, SIGKILL);
	waitpid(task, NULL, 0);
}

TEST(a_task_that_is_killed_is_none)
{
	pid_t task = task_new();

	can_stay_loaded = true;
	assert_int_equal(status_of(task, true), EXIT_SUCCESS);
	/* It is a zombie until then. */
	waitpid(task, NULL, 0);
	assert_int_equal(status_of(task, false), EXIT_SUCCESS);
}

TEST(what_cannot_be_decided_is_a_failure)
{
	pid_t task = task_new();

	can_stay_loaded = false;
	assert_int_equal(status_of(task, true), EXIT_FAILURE);
	waitpid(task, NULL, 0);
}

UNIT_MAIN(NULL, NULL)
