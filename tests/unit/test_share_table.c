// SPDX-License-Identifier: GPL-2.0-only
/* What tasks tell each other of their buffers. criu's store of files is an array. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "host/host.h"
#include "log_stub.h"
#include "share/table.h"

#define MAX_KEPT    64
#define NR_BUFFERS  1000u
#define NR_SHARERS  4u

static int kept[MAX_KEPT];
static unsigned int nr_kept, nr_asked;

int criu_keep_files(const int *fds, size_t nr)
{
	assert_true(nr_kept < MAX_KEPT);
	kept[nr_kept] = bundle_new(fds, nr);
	return (int)nr_kept++;
}

int criu_kept_files(int store_id, int fds[BUNDLE_MAX], size_t *ret_nr)
{
	assert_in_range(store_id, 0, nr_kept - 1);
	nr_asked++;
	return bundle_open(kept[store_id], fds, ret_nr);
}

STUB(int, criu_kept_file, (int store_id), -EBADF)
STUB(int, criu_keep_file, (int fd), -EBADF)

/* ---- time, which naps alone make go on, and faster ---- */

static double now;

STUB(double, __wrap_monotonic_seconds, (void), now)

int __wrap_usleep(useconds_t us)
{
	now += 20 * us / 1e6;
	return 0;
}

static int new_table(void **state)
{
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
	assert_int_equal(share_batch_export(&batch, table), 0);
	for (unsigned int i = 1; i <= nr; i++)
		close(fds[i]);
	free(fds);
	return inodes;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, new_table, end_table)

FIXTURE_TEST(each_buffer_is_found_any_number_of_times)
{
	int first = dup(0);
	ino_t *inodes = tell(*unit_state, NR_BUFFERS);

	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int i = NR_BUFFERS; i; i--) {
			int fd = share_table_get(*unit_state, i);

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

/* criu is asked once for what was exported together. */
FIXTURE_TEST(neighbours_are_taken_together)
{
	struct share_open open = { 0 };
	ino_t *inodes = tell(*unit_state, NR_BUFFERS);
	int first = dup(0);

	nr_asked = 0;
	for (unsigned int i = 1; i <= NR_BUFFERS; i++)
		assert_int_equal(inode(share_table_borrow(*unit_state, &open, i)), inodes[i]);
	assert_int_equal(nr_asked, (NR_BUFFERS + BUNDLE_MAX - 1) / BUNDLE_MAX);
	assert_int_equal(inode(share_table_borrow(*unit_state, &open, 1)), inodes[1]);
	share_open_done(&open);
	close(first);
	assert_int_equal(dup(0), first);
	close(first);
	free(inodes);
}

FIXTURE_TEST(waiting_ends_with_the_reason)
{
	share_table_fail(*unit_state);
	assert_int_equal(share_table_get(*unit_state, 1), -ECANCELED);
	/* Another task has said why. */
	assert_non_null(strstr(log_text, "cannot be restored"));
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(what_was_told_before_a_failure_is_still_found)
{
	int fd;

	free(tell(*unit_state, 1));
	share_table_fail(*unit_state);
	fd = share_table_get(*unit_state, 1);
	assert_true(fd >= 0);
	close(fd);
}

FIXTURE_TEST(a_buffer_of_nobody_is_not_waited_for)
{
	struct share_table *table = *unit_state;

	table->nr_exported = NR_SHARERS;
	assert_int_equal(share_table_get(*unit_state, 1), -EBADMSG);
	assert_non_null(strstr(log_text, "has no owner"));
}

FIXTURE_TEST(two_owners_are_refused)
{
	struct share_batch batch = { 0 };

	free(tell(*unit_state, 1));
	assert_int_equal(share_batch_add(&batch, *unit_state, 1, 0), 0);
	assert_int_equal(share_batch_export(&batch, *unit_state), -EBADMSG);
	assert_non_null(strstr(log_text, "buffer 1 of the images has two owners"));
}

/* Of images that were mixed: an owner that never comes. */
FIXTURE_TEST(a_buffer_that_does_not_come_is_given_up)
{
	double begin = monotonic_seconds();

	assert_int_equal(share_table_get(*unit_state, 7), -ETIMEDOUT);
	assert_in_range((uint64_t)(monotonic_seconds() - begin), 600, 602);
	assert_non_null(strstr(log_text, "buffer 7, which the process shares, was not created within 600 s: 0 of 4 processes"));
}

FIXTURE_TEST(images_of_two_dumps_are_refused)
{
	assert_int_equal(share_table_begin(*unit_state, NR_SHARERS), 0);
	assert_int_equal(share_table_begin(*unit_state, NR_SHARERS + 1), -EBADMSG);
}

FIXTURE_TEST(all_have_to_come)
{
	struct share_table *table = *unit_state;

	table->nr_files = table->nr_filled = 1;
	for (unsigned int i = 0; i < NR_SHARERS; i++, table->nr_attached++)
		assert_int_equal(share_table_check(table), -EBADMSG);
	assert_int_equal(share_table_check(table), 0);
	table->nr_files++;
	assert_int_equal(share_table_check(table), -EBADMSG);
}

/* ---- images alone ---- */

static struct gpu_process image_with(struct bo *bos, uint32_t nr_bos, uint32_t nr_sharers)
{
	return (struct gpu_process){ .nr_sharers = nr_sharers, .state = { .bos = bos, .nr_bos = nr_bos } };
}

static struct bo vram(uint32_t buffer, enum kfd_bo_kind kind)
{
	return (struct bo){ .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM, .share = { .buffer = buffer, .kind = kind } };
}

FIXTURE_TEST(images_alone_are_checked_as_in_a_restore)
{
	struct share_table *table = *unit_state;
	struct bo bos[] = { vram(1, KFD_BO_OWN), vram(2, KFD_BO_GEM), vram(0, KFD_BO_OWN), vram(3, KFD_BO_IMPORT) };
	struct gpu_process image = image_with(bos, ARRAY_SIZE(bos), NR_SHARERS);

	assert_int_equal(share_check_owned(table, &image), 0);
	for (uint32_t buffer = 0; buffer < 3; buffer++)
		assert_int_equal(share_check_named(table, buffer), 0);
	assert_int_equal(share_check_named(table, 3), -EBADMSG);
	assert_non_null(strstr(log_text, "buffer 3, which the process shares, has no owner in the images"));
	assert_int_equal(share_check_named(table, 3), 0);
	assert_int_equal(share_table_check(table), -EBADMSG);
}

/* The others of that image are known all the same. */
FIXTURE_TEST(two_images_with_one_buffer_are_found)
{
	struct bo first = vram(1, KFD_BO_OWN), second[] = { vram(1, KFD_BO_OWN), vram(2, KFD_BO_OWN) };
	struct gpu_process one = image_with(&first, 1, NR_SHARERS), other = image_with(second, 2, NR_SHARERS);

	assert_int_equal(share_check_owned(*unit_state, &one), 0);
	assert_int_equal(share_check_owned(*unit_state, &other), -EBADMSG);
	assert_non_null(strstr(log_text, "buffer 1 of the images has two owners"));
	assert_int_equal(share_check_named(*unit_state, 2), 0);
	other.nr_sharers++;
	assert_int_equal(share_check_owned(*unit_state, &other), -EBADMSG);
}

UNIT_MAIN(NULL, NULL)
