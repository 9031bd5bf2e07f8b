// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the content engine refuses and how: one error line with GPU, BO and offset, the
 * right error, in bounded time, nothing left behind.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <libdrm/amdgpu_drm.h>

#include "content_test.h"

static const uint64_t sizes[] = { 1 * MIB, 4096, 5 * MIB, 12288 };
static struct fixture_gpu saved, target;

static void begin_saved_in(const char *dir)
{
	struct rng rng = { 1 };

	begin_gpus(&one_ring);
	fixture_gpu_init(&saved, 0x51, sizes, ARRAY_SIZE(sizes), FILL_RANDOM, &rng);
	saved.gpu.pages_fd = fixture_file(dir);
	assert_int_equal(fixture_dump(&saved.gpu, 1, 1 * MIB), 0);
	fixture_gpu_like(&target, &saved);
	log_clear();
}

static int begin_saved(void **state)
{
	begin_saved_in(FIXTURE_DISK);
	return 0;
}

static int end_saved(void **state)
{
	assert_clean();
	close(saved.gpu.pages_fd);
	fixture_gpu_done(&saved);
	fixture_gpu_done(&target);
	return 0;
}

/* There is a GPU with a good pages file, and one to restore it into. */
#define SAVED_TEST(test) UNIT_TEST(test, begin_saved, end_saved)

static void assert_restore_fails(int err, const char *text)
{
	assert_int_equal(fixture_restore(&target.gpu, 1, 1 * MIB), err);
	assert_said_once(text);
}

static void assert_dump_fails(int err, const char *text)
{
	assert_int_equal(fixture_dump(&saved.gpu, 1, 1 * MIB), err);
	assert_said_once(text);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- files that are not what was saved ---- */

static const struct damage {
	const char *name;
	uint64_t length;	/* 0: as it is */
	const uint64_t *prefix; /* NULL: as it is */
	uint64_t flipped;	/* the offset of a byte of which one bit is another; 0: none */
	const char *text;
} damages[] = {
	{ "a_truncated_file_is_refused", .length = 8 + 1 * MIB + 4096 + 100,
	  .text = "gpu 0x51: pages-51.img at offset 1052780 (BO 102, byte 100): is truncated: 1052780 bytes, and needs 6307848" },
	{ "a_file_cut_in_its_prefix_is_refused", .length = 3,
	  .text = "gpu 0x51: pages-51.img at offset 3 (length prefix): is truncated: 3 bytes" },
	{ "an_over_long_file_is_refused", .length = 6307848 + 1,
	  .text = "gpu 0x51: pages-51.img at offset 6307848 (end of the buffer data): has 1 bytes behind its buffer data" },
	{ "a_wrong_length_prefix_is_refused", .prefix = &(const uint64_t){ 6307840 - 4096 },
	  .text = "(length prefix): announces 6303744 bytes, the buffers have 6307840" },
	{ "an_unfinished_dump_is_refused", .prefix = &(const uint64_t){ 0 }, .text = "announces 0 bytes" },
	{ "an_altered_first_byte_is_refused", .flipped = 8, .text = "at offset 8: BO 100: is damaged" },
	{ "an_altered_last_byte_of_a_bo_is_refused", .flipped = 8 + 1 * MIB - 1, .text = "at offset 8: BO 100: is damaged" },
	{ "an_altered_first_byte_of_a_bo_is_refused", .flipped = 8 + 1 * MIB,
	  .text = "at offset 1048584: BO 101: is damaged" },
	{ "an_altered_byte_within_a_bo_is_refused", .flipped = 8 + 3 * MIB, .text = "BO 102: is damaged" },
	{ "an_altered_last_byte_is_refused", .flipped = 6307847,
	  .text = "BO 103: is damaged: CRC-32C of its 12288 bytes is " },
};

static void flip(uint64_t at)
{
	uint8_t byte;

	assert_int_equal(pread(saved.gpu.pages_fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(saved.gpu.pages_fd, &byte, 1, (off_t)at), 1);
}

ROW_TEST(a_damaged_file_is_refused, damages, name, begin_saved, end_saved)
{
	const struct damage *damage = *unit_state;

	if (damage->length)
		assert_int_equal(ftruncate(saved.gpu.pages_fd, (off_t)damage->length), 0);
	if (damage->prefix)
		assert_int_equal(pwrite(saved.gpu.pages_fd, damage->prefix, 8, 0), 8);
	if (damage->flipped)
		flip(damage->flipped);
	assert_restore_fails(-EBADMSG, damage->text);
}

SAVED_TEST(contents_that_became_a_hole_are_refused)
{
	assert_int_equal(fallocate(saved.gpu.pages_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * MIB, 1 * MIB),
			 0);
	assert_restore_fails(-EBADMSG, "BO 102: is damaged");
}

/* ---- callers' and the kernel's no ---- */

SAVED_TEST(a_pages_file_that_is_none_is_refused)
{
	int fds[2];

	close(saved.gpu.pages_fd);
	assert_int_equal(pipe(fds), 0);
	saved.gpu.pages_fd = fds[1];
	assert_dump_fails(-EINVAL, "gpu 0x51: pages-51.img at offset 0 (length prefix): neither a file nor a stream");
	close(fds[0]);
}

SAVED_TEST(a_file_that_cannot_be_written_fails_with_its_error)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", saved.gpu.pages_fd);
	assert_true(dup2(open(path, O_RDONLY), saved.gpu.pages_fd) >= 0);
	assert_dump_fails(-EINVAL, "setting the length to 0: Invalid argument");
}

SAVED_TEST(a_limit_of_the_file_size_is_reported)
{
	struct rlimit limit, before;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1 * MIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_dump_fails(-EFBIG, "setting the length to 6307848: File too large"); /* and no SIGXFSZ */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* Several lanes find it, each at an offset of its own. */
static void assert_dmabuf_is_named(int err, const char *why)
{
	assert_dump_fails(err, "gpu 0x51: BO 102, byte ");
	assert_non_null(strstr(log_text, why));
}

SAVED_TEST(a_dmabuf_that_is_none_is_named)
{
	close(saved.gpu.bos[2].dmabuf_fd);
	saved.gpu.bos[2].dmabuf_fd = -1;
	assert_dmabuf_is_named(-EBADF, ": importing the dma-buf: Bad file descriptor");
}

SAVED_TEST(a_dmabuf_that_is_too_small_is_named)
{
	assert_int_equal(ftruncate(saved.gpu.bos[2].dmabuf_fd, 4 * MIB), 0);
	assert_dmabuf_is_named(-EINVAL, ": the dma-buf is smaller than the BO");
}

SAVED_TEST(an_empty_bo_is_refused)
{
	saved.gpu.bos[1].size = 0;
	assert_dump_fails(-EINVAL, "gpu 0x51: sizes of its 4 BOs make no file");
}

SAVED_TEST(a_failed_dump_gives_its_space_back)
{
	assert_int_equal(ftruncate(saved.gpu.bos[3].dmabuf_fd, 4096), 0);
	assert_dump_fails(-EINVAL, "BO 103, byte 0");
	assert_int_equal(lseek(saved.gpu.pages_fd, 0, SEEK_END), 0);
}

/* ---- a GPU that does not do what it should ---- */

TEST(a_hanging_gpu_ends_the_dump_in_bounded_time)
{
	static const struct content_options options = { .max_buffer_bytes = 1 * MIB, .fence_timeout_ms = 150 };

	for (unsigned int hang = 1; hang <= 9; hang += 2)
		for (uint32_t rings = 1; rings <= 3; rings += 2) {
			struct fake_drm_config config = { .rings = rings, .hang = hang };
			double start;

			begin_saved(NULL);
			begin_gpus(&config);
			start = now();
			assert_int_equal(content_copy(CONTENT_DUMP, &saved.gpu, 1, &options), -ETIME);
			assert_true(now() - start < 20); /* on a busy machine; else well under a second */
			assert_said_once("the GPU does not finish a copy: Timer expired");
			end_saved(NULL);
		}
}

SAVED_TEST(a_slow_gpu_is_waited_for)
{
	static const struct content_options options = { .max_buffer_bytes = 16 * MIB, .fence_timeout_ms = 20000 };

	begin_gpus(&(struct fake_drm_config){ .rings = 1, .delay_us = 250000 });
	assert_int_equal(content_copy(CONTENT_DUMP, &saved.gpu, 1, &options), 0);
	assert_true(fixture_file_is_right(saved.gpu.pages_fd, &saved));
}

TEST(a_reset_of_the_gpu_is_noticed)
{
	static const uint64_t flags[] = { AMDGPU_CTX_QUERY2_FLAGS_RESET, AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct fake_drm_config reset = { .rings = 1, .reset = flags[i] };

		begin_saved(NULL);
		begin_gpus(&reset);
		assert_dump_fails(-EIO, "the GPU was reset during the copy");
		assert_int_equal(lseek(saved.gpu.pages_fd, 0, SEEK_END), 0);
		begin_gpus(&one_ring);
		assert_int_equal(fixture_dump(&saved.gpu, 1, 1 * MIB), 0);
		begin_gpus(&reset);
		assert_restore_fails(-EIO, "the GPU was reset during the copy");
		end_saved(NULL);
	}
}

/* In a child: 0 if it is an error, and no end by a signal, now or later. */
static int dump_too_much(void)
{
	static const struct content_options options;
	const struct rlimit limit = { 1 * MIB, 1 * MIB };
	sigset_t pending;

	signal(SIGXFSZ, SIG_DFL);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (content_copy(CONTENT_DUMP, &saved.gpu, 1, &options) != -EFBIG || !strstr(log_text, "File too large"))
		return 1;
	return sigpending(&pending) || sigismember(&pending, SIGXFSZ) ? 2 : 0;
}

SAVED_TEST(a_file_that_may_not_be_so_large_is_an_error)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(dump_too_much());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

SAVED_TEST(a_gpu_without_a_dma_ring_is_refused)
{
	begin_gpus(&(struct fake_drm_config){ .rings = 0 });
	assert_dump_fails(-EOPNOTSUPP, "gpu 0x51: to copy 4 BOs: finding a DMA ring that programs may use, of which "
				       "amdgpu.user_queue=2 leaves none");
}

/* Its packets hold another count: contents would come back without their last byte. */
SAVED_TEST(a_gpu_older_than_gfx9_is_refused)
{
	begin_gpus(&(struct fake_drm_config){ .rings = 1, .family_id = AMDGPU_FAMILY_VI });
	assert_dump_fails(-EOPNOTSUPP, "using a GPU older than gfx9 (family 130)");
}

/* ---- several GPUs ---- */

SAVED_TEST(the_failure_of_one_gpu_stops_the_others)
{
	struct content_gpu gpus[2];
	struct fixture_gpu other;
	struct rng rng = { 3 };
	int fds[2];
	double start;

	begin_gpus(&(struct fake_drm_config){ .rings = 1, .delay_us = 100000 });
	fixture_gpu_init(&other, 0x52, sizes, ARRAY_SIZE(sizes), FILL_RANDOM, &rng);
	assert_int_equal(pipe(fds), 0);
	other.gpu.streaming = true;
	other.gpu.pages_fd = fds[1]; /* nobody reads */
	assert_int_equal(ftruncate(saved.gpu.bos[2].dmabuf_fd, 4096), 0);
	gpus[0] = other.gpu;
	gpus[1] = saved.gpu;
	start = now();
	assert_int_equal(fixture_dump(gpus, 2, 1 * MIB), -EINVAL);
	assert_true(now() - start < 20);
	assert_said_once("gpu 0x51: BO 102, byte 0: the dma-buf is smaller");
	close(fds[0]);
	close(fds[1]);
	fixture_gpu_done(&other);
}

/* With one I/O thread and with two. */
TEST(what_is_cancelled_says_nothing)
{
	static const char *const dirs[] = { FIXTURE_DISK, FIXTURE_MEMORY };
	const struct fake_drm_config config = { .rings = 1, .bytes_per_second = 2e6 };
	static const atomic_bool always = true;
	const struct content_options options = { .max_buffer_bytes = 64 * KIB,
						 .progress_ms = 1,
						 .is_cancelled = &always };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		begin_saved_in(dirs[i]);
		begin_gpus(&config);
		assert_int_equal(content_copy(CONTENT_RESTORE, &target.gpu, 1, &options), -ECANCELED);
		assert_int_equal(content_copy(CONTENT_DUMP, &saved.gpu, 1, &options), -ECANCELED);
		assert_int_equal(lseek(saved.gpu.pages_fd, 0, SEEK_END), 0);
		assert_int_equal(log_errors, 0);
		end_saved(NULL);
	}
}

UNIT_MAIN(NULL, NULL)
