// SPDX-License-Identifier: GPL-2.0-only
/* What tasks tell each other of their buffers. criu's store of files is an array. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/host.h"
#include "log_stub.h"
#include "share/table.h"

#define MAX_KEPT    64
#define NR_BUFFERS  1000u
#define NR_SHARERS  4u

static int kept[MAX_KEPT];
static unsigned int nr_kept, nr_asked;

int criu_keep_file(int fd)
{
	assert_true(nr_kept < MAX_KEPT);
	kept[nr_kept] = fd;
	return (int)nr_kept++;
}

int criu_kept_file(int token)
{
	assert_in_range(token, 0, nr_kept - 1);
	nr_asked++;
	return dup(kept[token]);
}

/* ---- time, which naps alone make go on, and faster ---- */

static double now;
static struct share_table *late; /* gets a buffer when it is time */
static double comes_at;
static uint32_t late_buffer;

double __wrap_monotonic_seconds(void)
{
	return now;
}

int __wrap_usleep(useconds_t us)
{
	now += 1000 * us / 1e6;
	if (late && now >= comes_at) {
		struct share_batch batch = { 0 };
		struct share_table *table = late;

		late = NULL;
		assert_int_equal(share_batch_add(&batch, table, late_buffer, 0), 0);
		assert_int_equal(share_batch_publish(&batch, table), 0);
	}
	return 0;
}

static void comes_after(struct share_table *table, double seconds, uint32_t buffer)
{
	late = table;
	comes_at = seconds;
	late_buffer = buffer;
}

/* The files in what is kept. */
int criu_let_go(int token)
{
	int err = bundle_empty(kept[token]);

	return err == -EAGAIN ? 0 : err;
}

static int new_table(void **state)
{
	late = NULL;
	*state = share_table_new();
	log_clear();
	return *state && !share_table_begin(*state, NR_SHARERS) ? 0 : -1;
}

static int end_table(void **state)
{
	share_table_free(*state);
	while (nr_kept)
		close(kept[--nr_kept]);
	return 0;
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* Tells of the buffers from 1 on; returns the files' inodes. */
static ino_t *tell(struct share_table *table, unsigned int nr)
{
	struct share_batch batch = { 0 };
	ino_t *inodes = calloc(nr + 1, sizeof(*inodes));
	int *fds = calloc(nr + 1, sizeof(*fds));

	assert_non_null(inodes);
	assert_non_null(fds);
	for (unsigned int i = 1; i <= nr; i++) {
		fds[i] = memfd_create("buffer", MFD_CLOEXEC);
		inodes[i] = inode(fds[i]);
		assert_int_equal(share_batch_add(&batch, table, i, fds[i]), 0);
	}
	assert_int_equal(share_batch_publish(&batch, table), 0);
	for (unsigned int i = 1; i <= nr; i++)
		close(fds[i]);
	free(fds);
	return inodes;
}

static void each_buffer_is_found_any_number_of_times(void **state)
{
	int first = dup(0);
	ino_t *inodes = tell(*state, NR_BUFFERS);

	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int i = NR_BUFFERS; i; i--) {
			int fd = share_table_get(*state, i);

			assert_true(fd >= 0);
			assert_int_equal(inode(fd), inodes[i]);
			close(fd);
		}
	free(inodes);
	/* None was left open but those that criu keeps, which are few. */
	assert_int_equal(nr_kept, (NR_BUFFERS + BUNDLE_MAX - 1) / BUNDLE_MAX);
	close(first);
	assert_true(dup(0) <= first + (int)nr_kept);
	assert_int_equal(log_errors, 0);
}

/* criu is asked once for what was published together. */
static void neighbours_are_taken_together(void **state)
{
	struct share_open open = { 0 };
	ino_t *inodes = tell(*state, NR_BUFFERS);
	int first = dup(0);

	nr_asked = 0;
	for (unsigned int i = 1; i <= NR_BUFFERS; i++)
		assert_int_equal(inode(share_table_borrow(*state, &open, i)), inodes[i]);
	assert_int_equal(nr_asked, (NR_BUFFERS + BUNDLE_MAX - 1) / BUNDLE_MAX);
	assert_int_equal(inode(share_table_borrow(*state, &open, 1)), inodes[1]);
	share_open_done(&open);
	close(first);
	assert_int_equal(dup(0), first);
	close(first);
	assert_int_equal(share_table_let_go(*state), 0);
	assert_int_equal(share_table_borrow(*state, &open, 1), -EAGAIN);
	share_open_done(&open);
	free(inodes);
}

/* criu keeps the bundles; the files in them are nobody's any more. */
static void what_all_have_is_let_go(void **state)
{
	ino_t *inodes = tell(*state, NR_BUFFERS);

	free(inodes);
	assert_int_equal(share_table_let_go(*state), 0);
	assert_int_equal(share_table_get(*state, 1), -EAGAIN);
	assert_int_equal(share_table_get(*state, NR_BUFFERS), -EAGAIN);
}

static void waiting_ends_with_the_reason(void **state)
{
	share_table_fail(*state);
	assert_int_equal(share_table_get(*state, 1), -ECANCELED);
	assert_non_null(strstr(log_text, "cannot be restored"));
	assert_int_equal(log_errors, 1);
}

static void what_was_told_before_a_failure_is_still_found(void **state)
{
	int fd;

	free(tell(*state, 1));
	share_table_fail(*state);
	fd = share_table_get(*state, 1);
	assert_true(fd >= 0);
	close(fd);
}

static void a_buffer_of_nobody_is_not_waited_for(void **state)
{
	for (unsigned int i = 0; i < NR_SHARERS; i++)
		share_table_published(*state);
	assert_int_equal(share_table_get(*state, 1), -EBADMSG);
	assert_non_null(strstr(log_text, "has no owner"));
}

static void two_owners_are_refused(void **state)
{
	struct share_batch batch = { 0 };

	free(tell(*state, 1));
	assert_int_equal(share_batch_add(&batch, *state, 1, 0), 0);
	assert_int_equal(share_batch_publish(&batch, *state), -EBADMSG);
	assert_non_null(strstr(log_text, "buffer 1 of the images has two owners"));
}

/* Of images that were mixed: an owner that never comes. */
static void a_buffer_that_does_not_come_is_given_up(void **state)
{
	double begin = monotonic_seconds();

	assert_int_equal(share_table_get(*state, 7), -ETIMEDOUT);
	assert_in_range((uint64_t)(monotonic_seconds() - begin), 600, 602);
	assert_non_null(strstr(log_text, "buffer 7, which the process shares, did not come within 600 s: 0 of 4 processes"));
}

/* A task copies for two hours. */
static void waiting_has_no_limit_while_contents_are_copied(void **state)
{
	double begin = monotonic_seconds();
	int fd;

	share_table_copies(*state, true);
	comes_after(*state, begin + 7200, 7);
	fd = share_table_get(*state, 7);
	assert_true(fd >= 0);
	close(fd);
	assert_true(monotonic_seconds() - begin >= 7200);
}

static void images_of_two_dumps_are_refused(void **state)
{
	assert_int_equal(share_table_begin(*state, NR_SHARERS), 0);
	assert_int_equal(share_table_begin(*state, NR_SHARERS + 1), -EBADMSG);
}

static void all_have_to_come(void **state)
{
	share_table_file(*state);
	for (unsigned int i = 0; i < NR_SHARERS; i++) {
		assert_int_equal(share_table_check(*state), -EBADMSG);
		share_table_attached(*state, !i);
	}
	assert_int_equal(share_table_check(*state), 0);
	share_table_file(*state);
	assert_int_equal(share_table_check(*state), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_table, end_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_buffer_is_found_any_number_of_times),
		TEST(neighbours_are_taken_together),
		TEST(what_all_have_is_let_go),
		TEST(waiting_ends_with_the_reason),
		TEST(what_was_told_before_a_failure_is_still_found),
		TEST(a_buffer_of_nobody_is_not_waited_for),
		TEST(two_owners_are_refused),
		TEST(a_buffer_that_does_not_come_is_given_up),
		TEST(waiting_has_no_limit_while_contents_are_copied),
		TEST(images_of_two_dumps_are_refused),
		TEST(all_have_to_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
