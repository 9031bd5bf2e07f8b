// SPDX-License-Identifier: GPL-2.0-only
/* What tasks share with criu's main process: temporary cgroups that a task could not remove (directories stand for them). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit.h"
#include "checkpoint/internal.h"
#include "host/criu.h"
#include "log_stub.h"
#include "remove_all.h"

static char top[32];
static int top_fd = -1, store[16], nr_stored, store_error, get_error;

int criu_keep_file(int fd)
{
	if (store_error) {
		close(fd);
		return store_error;
	}
	store[nr_stored] = fd;
	return nr_stored++;
}

int criu_keep_files(const int *fds, size_t nr)
{
	assert_int_equal(nr, 1);
	return criu_keep_file(fcntl(fds[0], F_DUPFD_CLOEXEC, 0));
}

int criu_kept_file(int store_id)
{
	assert_in_range(store_id, 0, nr_stored - 1);
	if (get_error)
		return get_error;
	return fcntl(store[store_id], F_DUPFD_CLOEXEC, 0);
}

STUB(pid_t, task_own_pid, (pid_t pid), pid)

static uint32_t losses;
static int open_error; /* of the node, in criu's main process */
static unsigned int nr_opened;

int drm_open_minor(uint32_t minor)
{
	assert_int_equal(minor, 128);
	nr_opened++;
	return open_error ? open_error : dup(top_fd);
}

int drm_count_losses(int fd, uint32_t *ret)
{
	*ret = losses;
	return 0;
}

static int setup(void **state)
{
	log_clear();
	nr_stored = store_error = get_error = 0;
	strcpy(top, "/tmp/test_left.XXXXXX");
	top_fd = mkdtemp(top) ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return top_fd < 0;
}

static int teardown(void **state)
{
	while (nr_stored)
		close(store[--nr_stored]);
	close(top_fd);
	return remove_all(top);
}

static bool is_there(const char *name)
{
	return !faccessat(top_fd, name, F_OK, 0);
}

static struct shared_keeper keeper;

static void make(struct shared *shared, const char *name)
{
	shared_keeper_init(&keeper, shared);
	assert_int_equal(keeper.hooks.made(keeper.hooks.arg, top_fd, name), 0);
	assert_int_equal(mkdirat(top_fd, name, 0700), 0);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(what_a_task_removes_is_forgotten)
{
	struct shared *shared = shared_new();

	make(shared, "one");
	keeper.hooks.removed(keeper.hooks.arg);
	shared_free(shared);
	/* Whoever has the name now keeps it. */
	assert_true(is_there("one"));
}

/* The store is criu's, and so is what a task puts into it: here it is filled before the task is made. */
FIXTURE_TEST(what_a_task_leaves_is_removed_by_the_main_process)
{
	struct shared *shared = shared_new();
	int status;
	pid_t pid;

	store[0] = fcntl(top_fd, F_DUPFD_CLOEXEC, 0);
	nr_stored = 1;
	pid = fork();
	if (!pid) {
		nr_stored = 0;
		make(shared, "two");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_there("two"));
	shared_free(shared);
	assert_false(is_there("two"));
	assert_null(strstr(log_text, "Warning"));
}

FIXTURE_TEST(what_is_gone_already_is_no_trouble)
{
	struct shared *shared = shared_new();

	make(shared, "three");
	assert_int_equal(unlinkat(top_fd, "three", AT_REMOVEDIR), 0);
	shared_free(shared);
	assert_string_equal(log_text, "");
}

FIXTURE_TEST(what_cannot_be_removed_is_named)
{
	struct shared *shared = shared_new();

	make(shared, "four");
	assert_int_equal(mkdirat(top_fd, "four/child", 0700), 0);
	shared_free(shared);
	assert_non_null(strstr(log_text, "Warning: the cgroup four could not be removed: Directory not empty"));
}

FIXTURE_TEST(a_directory_that_cannot_be_got_is_the_reason)
{
	struct shared *shared = shared_new();

	make(shared, "five");
	get_error = -EMFILE;
	shared_free(shared);
	assert_non_null(strstr(log_text, "Warning: the cgroup five could not be removed: Too many open files"));
}

FIXTURE_TEST(a_store_that_fails_is_told_and_nothing_is_kept)
{
	struct shared *shared = shared_new();

	store_error = -EMFILE;
	shared_keeper_init(&keeper, shared);
	assert_int_equal(keeper.hooks.made(keeper.hooks.arg, top_fd, "five"), -EMFILE);
	assert_int_equal(mkdirat(top_fd, "five", 0700), 0);
	shared_free(shared);
	assert_true(is_there("five"));
}

FIXTURE_TEST(a_gpu_that_lost_its_vram_is_noticed)
{
	struct shared *shared = shared_new();

	assert_int_equal(criu_keep_file(dup(top_fd)), 0);
	losses = 3;
	assert_int_equal(shared_note_gpu(shared, 128, 0), 0);
	assert_int_equal(nr_opened, 0);
	assert_int_equal(shared_check_losses(shared), 0);
	assert_int_equal(nr_opened, 1);
	losses = 4;
	/* What a later task has seen does not matter. */
	assert_int_equal(shared_note_gpu(shared, 128, 0), 0);
	assert_int_equal(shared->nr_gpus, 1);
	assert_int_equal(shared_check_losses(shared), -EIO);
	assert_non_null(strstr(log_text, "has reset the GPU of renderD128"));
	/* Where the node cannot be opened, by the file of a task. */
	open_error = -ENOENT;
	assert_int_equal(shared_check_losses(shared), -EIO);
	losses = 3;
	assert_int_equal(shared_check_losses(shared), 0);
	get_error = -EMFILE;
	assert_int_equal(shared_check_losses(shared), -EMFILE);
	open_error = 0;
	shared_free(shared);
}

UNIT_MAIN(NULL, NULL)
