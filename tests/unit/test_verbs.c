// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands that change processes, each with its child: what is called when that fails, is killed or is too late, and with
 * which status it ends. What they call is a list of words in shared memory.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "unit.h"
#include "kernel/kernel.h"
#include "log_stub.h"
#include "stopped/stopped.h"
#include "tool/commands.h"

#define MIB (1 << 20)

static struct world {
	char calls[256];
	int err;	/* of the first call */
	int signal;	/* which ends it; 0: none */
	bool is_half;
	uint64_t freed, kept;
	uint32_t reset_minor;
} *world;

/* ---- what they call ---- */

static int call(const char *name, const struct suspend_target *target, struct suspend_result *ret)
{
	bool is_first = !world->calls[0];

	snprintf(world->calls + strlen(world->calls), 64, "%s%s%s", is_first ? "" : " ", name, target->nr ? "" : "(id)");
	if (is_first && world->signal)
		raise(world->signal);
	ret->is_half = is_first && world->is_half;
	if (is_first && world->err)
		return (fail)(world->err, "it fails");
	ret->reports = calloc(1, sizeof(*ret->reports));
	assert_non_null(ret->reports);
	ret->nr = 1;
	ret->reports[0] = (struct suspend_report){
		.pid = 7, .has_kfd = true, .freed_bytes = world->freed, .kept_bytes[KEPT_BY_SHARING] = world->kept,
		.reset_minor = world->reset_minor,
	};
	return 0;
}

STUB(int, suspend_processes, (const struct suspend_target *target, const char *dir, const struct settings *settings,
			      struct suspend_result *ret),
     call(target->are_locked ? "checkpoint" : "suspend", target, ret))
STUB(int, suspend_lock, (const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret),
     call("lock", target, ret))
STUB(int, suspend_resume, (const struct suspend_target *target, enum resume_to to, unsigned int wait_seconds,
			   const struct settings *settings, struct suspend_result *ret),
     call(to == RESUME_TO_RUN ? "resume" : to == RESUME_TO_LOCK ? "restore" : "unlock", target, ret))
STUB(uint64_t, suspend_new_id, (void), 0x5eed)
STUB(void, suspend_clean, (void), /* nothing */)
STUB(int, suspend_list, (uint64_t id, int **ret, size_t *ret_nr), 0)
STUB(int, suspend_ask, (pid_t pid, struct suspend_info *ret), -ESRCH)
STUB(int, settings_load, (struct settings *settings, const char *conf, int image_dir,
			  const char *(*environment)(const char *name)), 0)
STUB(const char *, options_or_environment, (const char *name), NULL)
STUB(int, task_find_mark, (pid_t pid, int after), -1)
STUB(int, task_in_initial_pid_ns, (void), 1)
STUB(int, task_list_kfd, (int **ret, size_t *ret_nr), 0)
STUB(int, resume_queues, (int pid), TOOL_BAD)

/* ---- runs ---- */

static int pid = 7;

static int run_here(enum suspend_verb verb, struct world with)
{
	const struct arguments arguments = { .verb = verb, .pids = &pid, .nr_pids = 1 };

	*world = with;
	print_start(false);
	return print_finish(command_verb(&arguments));
}

static int run(enum suspend_verb verb, struct world with)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(run_here(verb, with));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int begin(void **state)
{
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return world == MAP_FAILED;
}

static int end(void **state)
{
	return munmap(world, sizeof(*world));
}

static const enum suspend_verb verbs[] = { SUSPEND, RESUME, LOCK, CHECKPOINT, RESTORE, UNLOCK };
static const char *const names[] = { "suspend", "resume", "lock", "checkpoint", "restore", "unlock" };

TEST(each_command_does_what_it_says)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		assert_int_equal(run(verbs[i], (struct world){ .freed = MIB }), TOOL_GOOD);
		assert_string_equal(world->calls, names[i]);
	}
}

/* Such as VMM before Linux 6.18, or buffers that are shared. */
TEST(a_suspend_that_frees_less_than_half_has_a_status_of_its_own)
{
	assert_int_equal(run(SUSPEND, (struct world){ .freed = MIB - 1, .kept = MIB }), TOOL_LITTLE);
	assert_int_equal(run(CHECKPOINT, (struct world){ .freed = 0, .kept = 1 }), TOOL_LITTLE);
	assert_int_equal(run(SUSPEND, (struct world){ .freed = MIB, .kept = MIB }), TOOL_GOOD);
	assert_int_equal(run(SUSPEND, (struct world){ 0 }), TOOL_GOOD);
	/* What a resume says of it is no failure of the resume. */
	assert_int_equal(run(RESUME, (struct world){ .freed = 0, .kept = MIB }), TOOL_GOOD);
	assert_int_equal(run(LOCK, (struct world){ .freed = 0, .kept = MIB }), TOOL_GOOD);
}

TEST(a_reset_meanwhile_has_it_too)
{
	assert_int_equal(run(RESUME, (struct world){ .reset_minor = 128 }), TOOL_RESET);
	assert_int_equal(run(UNLOCK, (struct world){ .reset_minor = 128 }), TOOL_RESET);
}

/* All that it has taken, by its number, and no others. */
TEST(what_a_failed_suspend_has_taken_is_given_back)
{
	assert_int_equal(run(SUSPEND, (struct world){ .err = -ENOSPC }), TOOL_FAIL);
	assert_string_equal(world->calls, "suspend resume(id)");
	assert_int_equal(run(LOCK, (struct world){ .err = -ENOSPC }), TOOL_FAIL);
	assert_string_equal(world->calls, "lock resume(id)");
}

/* The processes may be in any state: nobody touches them, but those that have lost memory. */
TEST(a_failed_checkpoint_leaves_all_as_it_was)
{
	assert_int_equal(run(CHECKPOINT, (struct world){ .err = -EINVAL }), TOOL_FAIL);
	assert_string_equal(world->calls, "checkpoint");
	assert_int_equal(run(CHECKPOINT, (struct world){ .err = -EIO, .is_half = true }), TOOL_FAIL);
	assert_string_equal(world->calls, "checkpoint restore");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i] != SUSPEND && verbs[i] != LOCK) {
			assert_int_equal(run(verbs[i], (struct world){ .err = -EIO }), TOOL_FAIL);
			assert_string_equal(world->calls, names[i]);
		}
}

TEST(whoever_is_killed_is_cleaned_up_after)
{
	static const char *const then[] = { "resume(id)", "resume", "resume(id)", "restore", "restore", "unlock" };
	char expected[64];

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		assert_int_equal(run(verbs[i], (struct world){ .signal = SIGKILL }), TOOL_FAIL);
		snprintf(expected, sizeof(expected), "%s %s", names[i], then[i]);
		assert_string_equal(world->calls, expected);
	}
}

TEST(when_the_time_is_over_the_processes_run)
{
	assert_int_equal(run(SUSPEND, (struct world){ .signal = SIGALRM }), TOOL_BAD);
	assert_string_equal(world->calls, "suspend resume(id)");
	assert_int_equal(run(LOCK, (struct world){ .signal = SIGALRM }), TOOL_BAD);
	assert_string_equal(world->calls, "lock resume(id)");
	assert_int_equal(run(CHECKPOINT, (struct world){ .signal = SIGALRM }), TOOL_BAD);
	assert_string_equal(world->calls, "checkpoint unlock");
}

static void inherit(bool blocks)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	if (blocks)
		sigprocmask(SIG_BLOCK, &set, NULL);
	else
		signal(SIGALRM, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
}

/* A program that ignores or blocks signals hands that down to whom it starts. */
TEST(what_the_caller_does_with_signals_does_not_matter)
{
	for (int blocks = 0; blocks < 2; blocks++) {
		pid_t child;
		int status;

		fflush(NULL);
		child = fork();
		if (!child) {
			inherit(blocks);
			_exit(run_here(LOCK, (struct world){ .signal = SIGALRM }));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, W_EXITCODE(TOOL_BAD, 0));
		assert_string_equal(world->calls, "lock resume(id)");
	}
}

UNIT_MAIN(begin, end)
