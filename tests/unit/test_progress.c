// SPDX-License-Identifier: GPL-2.0-only
/* Progress lines: what they say, and that no reader can stop the copy. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "unit.h"
#include "pages/internal.h"
#include "log_stub.h"

static struct content_bo bos[] = { { .size = 3000000 }, { .size = 1000000 } };

static char path[64];

static int setup(void **state)
{
	int fd;

	log_clear();
	strcpy(path, "/tmp/test_progress.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

static void report(uint64_t bytes, double seconds)
{
	struct content_gpu gpus[2] = {
		{ .gpu_id = 0xab, .bos = bos, .nr_bos = 2, .stats = { .bytes = bytes, .seconds = seconds } },
		{ .gpu_id = 0xcd, .bos = bos, .nr_bos = 1 },
	};
	struct progress progress = progress_open(path, "dump");

	progress_report(&progress, &gpus[0]);
	progress_report(&progress, &gpus[1]);
	progress_close(&progress);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(one_line_for_each_gpu)
{
	char text[512] = "";
	FILE *f;

	report(1000000, 0.5);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_string_equal(text, "dump gpu=0xab done=1000000 total=4000000 rate=2.0 left=1.5\n"
				  "dump gpu=0xcd done=0 total=3000000 rate=0.0 left=?\n");
}

TEST(nothing_is_written_without_a_path)
{
	struct progress progress = progress_open("", "dump");

	assert_int_equal(progress.fd, -1);
	progress_report(&progress, NULL);
	assert_int_equal(log_text[0], '\0');
}

FIXTURE_TEST(a_fifo_without_reader_is_left_out)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	report(1, 1);
	assert_non_null(strstr(log_text, "no process reads"));
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(a_full_pipe_does_not_stop_the_copy)
{
	int i, reader;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	for (i = 0; i < 2000; i++)
		report(1, 1);
	close(reader);
	assert_int_equal(log_errors, 0);
}

/* A socket cannot be opened by its name. */
TEST(stderr_may_be_a_socket_that_nobody_reads)
{
	int socks[2], saved = dup(STDERR_FILENO), i;
	struct progress progress;
	char text[64];

	log_clear();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
	dup2(socks[1], STDERR_FILENO);
	progress = progress_open("/dev/stderr", "dump");
	for (i = 0; i < 3000; i++)
		progress_report(&progress, &(struct content_gpu){ .gpu_id = 0xab, .bos = bos, .nr_bos = 1 });
	progress_close(&progress);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(read(socks[0], text, sizeof(text)) == sizeof(text));
	assert_memory_equal(text, "dump gpu=0xab done=0", 20);
	assert_int_equal(log_errors, 0);
	close(socks[0]);
	close(socks[1]);
}

UNIT_MAIN(NULL, NULL)
