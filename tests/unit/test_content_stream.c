// SPDX-License-Identifier: GPL-2.0-only
/* The content engine on pipes, as criu's image streamer gives them: once, in order, no seek. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>

#include "content_test.h"

static const uint64_t sizes[] = { 1 * MIB, 4096, 5 * MIB, 12288 };
static const uint64_t file_bytes = 8 + 6 * MIB + 16384;
static struct fixture_gpu saved, target;

/* A GPU, and its dump in a file (pages_fd of saved) that went there through a pipe. */
static void begin_saved(uint64_t max_bytes)
{
	struct fixture_peer *reader;
	struct rng rng = { 1 };
	int file;

	begin_gpus(&one_ring);
	file = fixture_file(FIXTURE_MEMORY);
	fixture_gpu_init(&saved, 0x51, sizes, ARRAY_SIZE(sizes), FILL_MIXED, &rng);
	saved.gpu.streaming = true;
	reader = fixture_reader(file, &saved.gpu.pages_fd);
	assert_int_equal(fixture_dump(&saved.gpu, 1, max_bytes), 0);
	close(saved.gpu.pages_fd);
	fixture_peer_join(reader);
	saved.gpu.pages_fd = file;
	fixture_gpu_like(&target, &saved);
}

static void end_saved(void)
{
	assert_clean();
	close(saved.gpu.pages_fd);
	fixture_gpu_done(&saved);
	fixture_gpu_done(&target);
}

static int restore_bytes(uint64_t bytes, uint64_t max_bytes)
{
	struct fixture_peer *writer = fixture_writer(saved.gpu.pages_fd, bytes, &target.gpu.pages_fd);
	int ret;

	log_clear();
	ret = fixture_restore(&target.gpu, 1, max_bytes);
	close(target.gpu.pages_fd);
	fixture_peer_join(writer);
	return ret;
}

TEST(a_stream_has_the_bytes_of_a_file)
{
	static const uint64_t caps[] = { 0, 4096, 100000, 1 * MIB };

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		begin_saved(caps[i]);
		assert_true(fixture_file_is_right(saved.gpu.pages_fd, &saved));
		assert_false(saved.gpu.stats.direct);
		assert_int_equal(restore_bytes(file_bytes, caps[i]), 0);
		assert_true(fixture_gpus_same(&saved, &target));
		end_saved();
	}
}

TEST(files_and_streams_interchange)
{
	begin_saved(0);
	target.gpu.streaming = false;
	target.gpu.pages_fd = saved.gpu.pages_fd;
	assert_int_equal(fixture_restore(&target.gpu, 1, 0), 0);
	assert_true(fixture_gpus_same(&saved, &target));
	end_saved();
}

TEST(a_stream_that_ends_early_is_refused)
{
	begin_saved(0);
	assert_int_equal(restore_bytes(3 * MIB + 8, 1 * MIB), -EBADMSG);
	assert_said_once("gpu 0x51: pages-51.img at offset 3145736 (BO 102, byte 2093056): ends after 3145736 bytes, "
			 "6307848 expected");
	assert_int_equal(restore_bytes(5, 1 * MIB), -EBADMSG);
	assert_said_once("at offset 5 (length prefix): ends within its length prefix");
	assert_int_equal(restore_bytes(0, 1 * MIB), -EBADMSG);
	assert_said_once("at offset 0 (length prefix): ends within its length prefix");
	end_saved();
}

TEST(a_stream_that_goes_on_is_refused)
{
	begin_saved(0);
	assert_int_equal(ftruncate(saved.gpu.pages_fd, (off_t)file_bytes + 1), 0);
	assert_int_equal(restore_bytes(file_bytes + 1, 0), -EBADMSG);
	assert_said_once("gpu 0x51: pages-51.img at offset 6307848 (end of the buffer data): continues after 6307848 bytes");
	end_saved();
}

TEST(altered_contents_of_a_stream_are_refused)
{
	begin_saved(0);
	assert_int_equal(pwrite(saved.gpu.pages_fd, "\x01\x02\x03\x04", 4, 8 + 1 * MIB + 17), 4);
	assert_int_equal(restore_bytes(file_bytes, 0), -EBADMSG);
	assert_said_once("BO 101: is damaged");
	end_saved();
}

TEST(a_reader_that_leaves_ends_the_dump)
{
	int fds[2];

	begin_saved(0);
	log_clear();
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	close(saved.gpu.pages_fd);
	saved.gpu.pages_fd = fds[1];
	assert_int_equal(fixture_dump(&saved.gpu, 1, 0), -EPIPE); /* and no SIGPIPE */
	assert_said_once("gpu 0x51: pages-51.img at offset 0 (length prefix): writing: Broken pipe");
	end_saved();
}

/* The other end of the pipe may be shared: it must not be left non-blocking. */
TEST(the_pipe_blocks_again_afterwards)
{
	struct fixture_peer *reader;
	int flags;

	begin_saved(0);
	close(saved.gpu.pages_fd);
	reader = fixture_reader(fixture_memfd(0), &saved.gpu.pages_fd);
	flags = fcntl(saved.gpu.pages_fd, F_GETFL);
	assert_int_equal(fixture_dump(&saved.gpu, 1, 0), 0);
	assert_int_equal(fcntl(saved.gpu.pages_fd, F_GETFL), flags);
	close(saved.gpu.pages_fd);
	fixture_peer_join(reader);
	saved.gpu.pages_fd = -1;
	end_saved();
}

UNIT_MAIN(NULL, NULL)
