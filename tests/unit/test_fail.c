// SPDX-License-Identifier: GPL-2.0-only
/* The text of a failure: the first cause has the words, each thread its own. */
#define _GNU_SOURCE

#include "unit.h"
#include "log_stub.h"

#undef fail

static int clear(void **state)
{
	log_clear();
	return 0;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, clear, NULL)

FIXTURE_TEST(the_first_text_wins)
{
	assert_string_equal(fail_text(), "");
	assert_int_equal(fail(-ENOSPC, "image %s: cannot write", "a.img"), -ENOSPC);
	assert_int_equal(fail(-EIO, "saving failed"), -EIO);
	assert_string_equal(fail_text(), "image a.img: cannot write");
	fail_clear();
	assert_string_equal(fail_text(), "");
	fail(-EIO, "saving failed");
	assert_string_equal(fail_text(), "saving failed");
}

FIXTURE_TEST(a_failure_says_its_error_and_keeps_errno)
{
	errno = EPERM;
	fail(-ENOENT, "cannot open: %m (%d)", 7);
	assert_string_equal(fail_text(), "cannot open: No such file or directory (7)");
	assert_int_equal(errno, EPERM);
	assert_int_equal(fail_in(-EACCES, "gpu %#x", 16), -EACCES);
	assert_int_equal(errno, EPERM);
}

FIXTURE_TEST(words_in_front_need_no_cause)
{
	assert_int_equal(fail_in(-ENOMEM, "gpu %#x: %m", 16), -ENOMEM);
	assert_string_equal(fail_text(), "gpu 0x10: Cannot allocate memory");
	assert_int_equal(fail_in(-ENOMEM, "pid %d", 12), -ENOMEM);
	assert_string_equal(fail_text(), "pid 12: gpu 0x10: Cannot allocate memory");
}

FIXTURE_TEST(a_failure_is_logged_once)
{
	assert_false(fail_log());
	fail(-EIO, "100 %% broken: %s", "%s%n");
	assert_string_equal(log_lines, "");
	assert_true(fail_log());
	assert_string_equal(log_lines, PLUGIN_ERROR_PREFIX "100 % broken: %s%n\n");
	assert_false(fail_log());
	assert_int_equal(log_nr_errors, 1);
}

FIXTURE_TEST(a_long_text_is_one_whole_line)
{
	char text[2 * FAIL_TEXT_MAX];

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

FIXTURE_TEST(threads_have_their_own)
{
	char theirs[FAIL_TEXT_MAX] = "";
	pthread_t thread;
	void *ret;

	fail(-EIO, "of the caller");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, theirs), 0);
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, theirs);
	assert_string_equal(theirs, "of the thread");
	assert_string_equal(fail_text(), "of the caller");
}

UNIT_MAIN(NULL, NULL)
