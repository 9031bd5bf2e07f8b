// SPDX-License-Identifier: GPL-2.0-only
/* The text of a failure: the first cause has the words, each thread its own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log_stub.h"

#undef fail

static int clear(void **state)
{
	(void)state;
	log_clear();
	return 0;
}

static void the_first_text_wins(void **state)
{
	(void)state;
	assert_string_equal(fail_text(), "");
	assert_int_equal(fail(-ENOSPC, "image %s: cannot write", "a.img"), -ENOSPC);
	assert_int_equal(fail(-EIO, "saving failed"), -EIO);
	assert_string_equal(fail_text(), "image a.img: cannot write");
	fail_clear();
	assert_string_equal(fail_text(), "");
	fail(-EIO, "saving failed");
	assert_string_equal(fail_text(), "saving failed");
}

static void a_failure_says_its_error_and_keeps_errno(void **state)
{
	(void)state;
	errno = EPERM;
	fail(-ENOENT, "cannot open: %m (%d)", 7);
	assert_string_equal(fail_text(), "cannot open: No such file or directory (7)");
	assert_int_equal(errno, EPERM);
	assert_int_equal(fail_in(-EACCES, "gpu %#x", 16), -EACCES);
	assert_int_equal(errno, EPERM);
}

static void words_in_front_need_no_cause(void **state)
{
	(void)state;
	assert_int_equal(fail_in(-ENOMEM, "gpu %#x: %m", 16), -ENOMEM);
	assert_string_equal(fail_text(), "gpu 0x10: Cannot allocate memory");
	assert_int_equal(fail_in(-ENOMEM, "pid %d", 12), -ENOMEM);
	assert_string_equal(fail_text(), "pid 12: gpu 0x10: Cannot allocate memory");
}

static void a_failure_is_logged_once(void **state)
{
	(void)state;
	assert_false(fail_log());
	fail(-EIO, "100 %% broken: %s", "%s%n");
	assert_string_equal(log_lines, "");
	assert_true(fail_log());
	assert_string_equal(log_lines, PLUGIN_ERROR_PREFIX "100 % broken: %s%n\n");
	assert_false(fail_log());
	assert_int_equal(log_nr_errors, 1);
}

static void a_long_text_is_one_whole_line(void **state)
{
	char text[2 * FAIL_TEXT_MAX];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	fail(-EIO, "%s", text);
	assert_int_equal(strlen(fail_text()), FAIL_TEXT_MAX - 1);
	fail_in(-EIO, "gpu %#x", 16);
	assert_int_equal(strlen(fail_text()), FAIL_TEXT_MAX - 1);
	assert_memory_equal(fail_text(), "gpu 0x10: xxx", 13);
	assert_true(fail_log());
	assert_int_equal(strlen(log_lines), strlen(PLUGIN_ERROR_PREFIX) + FAIL_TEXT_MAX);
	assert_int_equal(log_lines[strlen(log_lines) - 1], '\n');
}

static void *fail_elsewhere(void *arg)
{
	if (fail_text()[0])
		return NULL;
	fail(-EIO, "of the thread");
	snprintf(arg, FAIL_TEXT_MAX, "%s", fail_text());
	return arg;
}

static void threads_have_their_own(void **state)
{
	char theirs[FAIL_TEXT_MAX] = "";
	pthread_t thread;
	void *ret;

	(void)state;
	fail(-EIO, "of the caller");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, theirs), 0);
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, theirs);
	assert_string_equal(theirs, "of the thread");
	assert_string_equal(fail_text(), "of the caller");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_text_wins, clear),
		cmocka_unit_test_setup(a_failure_says_its_error_and_keeps_errno, clear),
		cmocka_unit_test_setup(words_in_front_need_no_cause, clear),
		cmocka_unit_test_setup(a_failure_is_logged_once, clear),
		cmocka_unit_test_setup(a_long_text_is_one_whole_line, clear),
		cmocka_unit_test_setup(threads_have_their_own, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
