// SPDX-License-Identifier: GPL-2.0-only
/*
 * The content engine through its interface, on GPUs that execute packets strictly: what
 * it saves and restores, into files.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <libdrm/amdgpu_drm.h>

#include "content_test.h"

#define BLOCK 4096ull /* of the file, in which contents begin after the length prefix */
#define PREFIX 8ull

#define CONFIG(...) (&(const struct fake_drm_config){ __VA_ARGS__ })
#define SIZES(...)  (const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

/* A GPU with BOs of such sizes and contents. */
static void make(struct fixture_gpu *f, const struct fake_drm_config *config, enum fixture_fill how, const uint64_t *sizes,
		 size_t nr)
{
	struct rng rng = { 7 };

	begin_gpus(config);
	fixture_gpu_init(f, 1, sizes, nr, how, &rng);
}

static void assert_said(const char *text)
{
	if (!strstr(log_text, text))
		fail_msg("the log lacks \"%s\":\n%s", text, log_text);
}

/* Dumps into a file of its own. */
static void dump(struct fixture_gpu *f, const char *dir, uint64_t max_bytes)
{
	f->gpu.pages_fd = fixture_file(dir);
	assert_int_equal(fixture_dump(&f->gpu, 1, max_bytes), 0);
}

static void assert_restores(struct fixture_gpu *f, uint64_t max_bytes)
{
	struct fixture_gpu to;

	fixture_gpu_like(&to, f);
	assert_int_equal(fixture_restore(&to.gpu, 1, max_bytes), 0);
	assert_true(fixture_gpus_same(f, &to));
	assert_int_equal(to.gpu.stats.bytes, f->bytes);
	fixture_gpu_done(&to);
}

static void end(struct fixture_gpu *f)
{
	close(f->gpu.pages_fd);
	fixture_gpu_done(f);
	assert_clean();
}

/* ---- what comes back ---- */

/* The thread sanitizer looks for races, which a few rounds have as well as many. */
#ifdef __SANITIZE_THREAD__
#define ROUNDS(n) ((n) / 4)
#else
#define ROUNDS(n) (n)
#endif

/* Sizes as programs have them, and others: from a byte to some MiB, whole pages or not. */
static size_t random_sizes(struct rng *rng, uint64_t *sizes, size_t max)
{
	size_t nr = 1 + rng_below(rng, max);

	for (size_t i = 0; i < nr; i++) {
		sizes[i] = 1 + rng_below(rng, rng_below(rng, 8) ? 40 * KIB : 6 * MIB);
		if (rng_below(rng, 3))
			sizes[i] = (sizes[i] + 4095) / 4096 * 4096;
	}
	return nr;
}

static uint64_t random_cap(struct rng *rng)
{
	static const uint64_t caps[] = { 0, 1, 4096, 8191, 20480, 64 * KIB, 1000001, 3 * MIB, 9 * MIB, 64 * MIB };

	return caps[rng_below(rng, ARRAY_SIZE(caps))];
}

static void round_trip(uint64_t seed)
{
	struct rng rng = { seed };
	struct fake_drm_config config = {
		.rings = 1 + (uint32_t)rng_below(&rng, 15), /* any rings, ring 0 or not */
	};
	const char *dir = rng_below(&rng, 2) ? FIXTURE_DISK : FIXTURE_MEMORY;
	uint64_t sizes[40], cap = random_cap(&rng);
	struct fixture_gpu f;
	size_t nr = random_sizes(&rng, sizes, cap && cap < 64 * KIB ? 8 : ARRAY_SIZE(sizes));

	begin_gpus(&config);
	fixture_gpu_init(&f, 0x7a31, sizes, nr, (enum fixture_fill)rng_below(&rng, FILL_NR), &rng);
	dump(&f, dir, cap);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_int_equal(f.gpu.stats.bytes, f.bytes);
	assert_int_equal(f.gpu.stats.direct, fixture_takes_direct(f.gpu.pages_fd));
	assert_restores(&f, random_cap(&rng));
	if (fake_drm_violation())
		fail_msg("seed %llu: %s", (unsigned long long)seed, fake_drm_violation());
	end(&f);
}

static void put_byte(struct fixture_gpu *f, size_t bo, uint64_t at)
{
	assert_int_equal(pwrite(f->gpu.bos[bo].dmabuf_fd, "\x80", 1, (off_t)at), 1);
}

TEST(random_bos_come_back_exactly)
{
	for (uint64_t seed = 1; seed <= ROUNDS(40); seed++)
		round_trip(seed);
}

TEST(several_gpus_have_a_file_each)
{
	static const uint64_t sizes[3][3] = { { 5 * MIB, 4096, 4096 },
					      { 3 * MIB + 4096, 12288, 4096 },
					      { 4096, 1, 7 } };
	struct fixture_gpu f[3], to[3];
	struct content_gpu gpus[3], to_gpus[3];
	struct rng rng = { 5 };

	begin_gpus(&one_ring);
	for (int i = 0; i < 3; i++) {
		fixture_gpu_init(&f[i], 0x100 + (uint32_t)i, sizes[i], 3, FILL_MIXED, &rng);
		f[i].gpu.pages_fd = fixture_file(FIXTURE_DISK);
		gpus[i] = f[i].gpu;
	}
	assert_int_equal(fixture_dump(gpus, 3, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(fixture_file_is_right(f[i].gpu.pages_fd, &f[i]));
		fixture_gpu_like(&to[i], &f[i]);
		to_gpus[i] = to[i].gpu;
	}
	assert_int_equal(fixture_restore(to_gpus, 3, 0), 0);
	assert_said("gpu 0x100: saved 5251072 bytes in ");
	assert_said("gpu 0x102: restored 4104 bytes in ");
	for (int i = 0; i < 3; i++) {
		assert_true(fixture_gpus_same(&f[i], &to[i]));
		fixture_gpu_done(&to[i]);
		end(&f[i]);
	}
}

/* libdrm has one device for all files of a GPU. */
TEST(one_gpu_may_be_given_twice)
{
	static const uint64_t size = 3 * MIB;
	struct fixture_gpu a, b;
	struct content_gpu gpus[2];
	struct rng rng = { 6 };

	begin_gpus(&one_ring);
	fixture_gpu_init(&a, 1, &size, 1, FILL_RANDOM, &rng);
	fixture_gpu_init(&b, 2, &size, 1, FILL_RANDOM, &rng);
	a.gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
	b.gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
	gpus[0] = a.gpu;
	gpus[1] = b.gpu;
	gpus[1].render_fd = a.gpu.render_fd;
	assert_int_equal(fixture_dump(gpus, 2, 0), 0);
	assert_true(fixture_file_is_right(a.gpu.pages_fd, &a));
	assert_true(fixture_file_is_right(b.gpu.pages_fd, &b));
	end(&a);
	end(&b);
}

TEST(the_same_buffer_may_be_given_twice)
{
	struct fixture_gpu f;

	make(&f, &one_ring, FILL_RANDOM, SIZES(64 * KIB, 4096, 64 * KIB));
	assert_true(dup2(f.gpu.bos[0].dmabuf_fd, f.gpu.bos[2].dmabuf_fd) >= 0);
	dump(&f, FIXTURE_MEMORY, 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_int_equal(f.gpu.bos[0].crc32c, f.gpu.bos[2].crc32c);
	assert_restores(&f, 0);
	end(&f);
}

TEST(a_gpu_without_bos_has_a_file_without_contents)
{
	struct fixture_gpu f;

	make(&f, &one_ring, FILL_RANDOM, NULL, 0);
	dump(&f, FIXTURE_DISK, 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_int_equal(fake_drm_calls(), 0);
	assert_restores(&f, 0);
	end(&f);
	assert_int_equal(fixture_dump(NULL, 0, 0), 0);
}

/* One byte of each block of the file, the last one of the file included. */
TEST(a_single_byte_of_a_block_comes_back)
{
	static const uint64_t places[] = { 0, 1, 7, 2048, BLOCK - 8, BLOCK - 2, BLOCK - 1 };
	static const uint64_t sizes[] = { 64 * KIB, BLOCK - PREFIX, 64 * KIB + 1, 5 * BLOCK - 1 };
	struct rng rng = { 15 };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct fixture_gpu f;
		uint64_t at = PREFIX;

		begin_gpus(&one_ring);
		fixture_gpu_init(&f, 1, sizes, ARRAY_SIZE(sizes), FILL_ZERO, &rng);
		for (size_t b = 0; b < ARRAY_SIZE(sizes); at += sizes[b++]) {
			put_byte(&f, b, sizes[b] - 1);
			for (uint64_t byte = 0; byte < sizes[b]; byte++)
				if ((at + byte) % BLOCK == places[i])
					put_byte(&f, b, byte);
		}
		dump(&f, FIXTURE_MEMORY, 0);
		assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
		assert_restores(&f, 0);
		end(&f);
	}
}

/* ---- how it is done ---- */

TEST(zeros_become_holes_and_are_filled_by_the_gpu)
{
	static const uint64_t sizes[] = { 16 * MIB, 16 * MIB };
	struct fixture_gpu f, to;
	struct rng rng = { 9 };
	struct stat st;

	for (int memory = 0; memory < 2; memory++) {
		begin_gpus(&one_ring);
		fixture_gpu_init(&f, 1, sizes, 2, FILL_ZERO, &rng);
		fixture_fill(f.gpu.bos[1].dmabuf_fd, 1 * MIB, FILL_RANDOM, &rng);
		dump(&f, memory ? FIXTURE_MEMORY : FIXTURE_DISK, 0);
		assert_int_equal(fstat(f.gpu.pages_fd, &st), 0);
		assert_in_range(st.st_blocks * 512, MIB, MIB + 64 * KIB);
		assert_in_range(f.gpu.stats.zero_bytes, 31 * MIB - 2 * 4096, 31 * MIB);
		fixture_gpu_like(&to, &f);
		assert_int_equal(fixture_restore(&to.gpu, 1, 0), 0);
		assert_true(fixture_gpus_same(&f, &to));
		assert_in_range(fake_drm_fill_bytes(), 31 * MIB - 2 * 4096, 31 * MIB);
		assert_int_equal(to.gpu.stats.zero_bytes, fake_drm_fill_bytes());
		assert_true(fixture_file_is_right(f.gpu.pages_fd, &f)); /* last: a mapping may fill the holes */
		fixture_gpu_done(&to);
		end(&f);
	}
}

/* Ranges of a pages file, ascending and apart. */
static size_t random_ranges(struct rng *rng, uint64_t file_bytes, struct content_range *ranges, size_t max)
{
	uint64_t pos = PREFIX;
	size_t nr = 0;

	while (nr < max && pos < file_bytes) {
		uint64_t from = pos + rng_below(rng, 3) * rng_below(rng, 300 * KIB);
		uint64_t to = from + 1 + rng_below(rng, rng_below(rng, 2) ? 9 * KIB : 2 * MIB);

		if (to > file_bytes)
			break;
		ranges[nr++] = (struct content_range){ from, to };
		pos = to + 1;
	}
	return nr;
}

/* What is between two offsets of the pages file, in the BOs themselves. */
static void clear_bos(struct fixture_gpu *f, uint64_t from, uint64_t to)
{
	uint64_t start = PREFIX;

	for (size_t i = 0; i < f->gpu.nr_bos; start += f->gpu.bos[i++].size) {
		uint64_t end = start + f->gpu.bos[i].size;
		uint64_t first = from > start ? from : start, last = to < end ? to : end;
		_cleanup_free_ void *zeros = first < last ? calloc(1, last - first) : NULL;

		if (zeros)
			assert_int_equal(pwrite(f->gpu.bos[i].dmabuf_fd, zeros, last - first, (off_t)(first - start)),
					 last - first);
	}
}

static void discard(uint64_t seed, bool streaming)
{
	struct rng rng = { seed };
	struct content_range ranges[20];
	struct fixture_peer *reader = NULL;
	uint64_t sizes[20], discarded = 0;
	struct fixture_gpu f;
	int file;

	begin_gpus(&one_ring);
	fixture_gpu_init(&f, 1, sizes, random_sizes(&rng, sizes, ARRAY_SIZE(sizes)), FILL_RANDOM, &rng);
	f.gpu.discarded = ranges;
	f.gpu.nr_discarded = random_ranges(&rng, PREFIX + f.bytes, ranges, ARRAY_SIZE(ranges));
	file = f.gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
	f.gpu.streaming = streaming;
	if (streaming)
		reader = fixture_reader(file, &f.gpu.pages_fd);
	assert_int_equal(fixture_dump(&f.gpu, 1, random_cap(&rng)), 0);
	if (streaming) {
		close(f.gpu.pages_fd);
		fixture_peer_join(reader);
	}
	f.gpu.pages_fd = file;
	f.gpu.streaming = false;
	for (size_t i = 0; i < f.gpu.nr_discarded; i++) {
		uint64_t from = (ranges[i].from + BLOCK - 1) / BLOCK * BLOCK, to = ranges[i].to / BLOCK * BLOCK;

		if (from >= to)
			continue;
		clear_bos(&f, from, to);
		discarded += to - from;
	}
	assert_int_equal(fake_drm_copy_bytes(), f.bytes - discarded);
	assert_in_range(f.gpu.stats.zero_bytes, discarded, f.bytes);
	assert_true(fixture_file_is_right(file, &f));
	assert_restores(&f, 0);
	end(&f);
}

TEST(what_is_discarded_is_not_copied_and_zero)
{
	for (uint64_t seed = 1; seed <= ROUNDS(20); seed++) {
		discard(seed, false);
		discard(seed, true);
	}
}

TEST(bytes_written_follow_the_data_page_by_page)
{
	static const uint64_t size = 20 * MIB;
	struct fixture_gpu f;
	struct stat st;

	make(&f, &one_ring, FILL_SPARSE, &size, 1);
	dump(&f, FIXTURE_DISK, 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_int_equal(fstat(f.gpu.pages_fd, &st), 0);
	/* One page in ten, each over two blocks of the file, since the prefix shifts all by 8 bytes. */
	assert_in_range(st.st_blocks * 512, 2 * size / 10 - 64 * KIB, 2 * size / 10 + 64 * KIB);
	assert_restores(&f, 0);
	end(&f);
}

TEST(small_bos_share_submissions)
{
	enum { NR = 3000 };
	static uint64_t sizes[NR];
	struct fixture_gpu f;

	for (int i = 0; i < NR; i++)
		sizes[i] = 4096;
	make(&f, &one_ring, FILL_RANDOM, sizes, NR);
	dump(&f, FIXTURE_MEMORY, 0);
	assert_in_range(fake_drm_submissions(), 1, 48); /* one for each window of 256 KiB */
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	end(&f);
}

TEST(bos_smaller_than_a_page_fill_indirect_buffers)
{
	enum { NR = 5000 };
	static uint64_t sizes[NR];
	struct fixture_gpu f;

	for (int i = 0; i < NR; i++)
		sizes[i] = 1 + (uint64_t)i % 5;
	make(&f, &one_ring, FILL_RANDOM, sizes, NR);
	dump(&f, FIXTURE_MEMORY, 0);
	assert_true(fake_drm_submissions() > 4); /* one window */
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_restores(&f, 0);
	end(&f);
}

TEST(mappings_are_released_as_windows_pass)
{
	enum { NR = 2000 };
	static uint64_t sizes[NR];
	struct fixture_gpu f;

	for (int i = 0; i < NR; i++)
		sizes[i] = 8192;
	make(&f, &one_ring, FILL_ZERO, sizes, NR);
	dump(&f, FIXTURE_MEMORY, 256 * KIB);
	/* Four slots of 64 KiB hold parts of 9 BOs each; the slots and the IBs are mapped, too. */
	assert_in_range(fake_drm_peak_mapped(), 10, 4 * 9 + 4 + 1);
	end(&f);
}

TEST(two_rings_are_used_where_there_are_more)
{
	struct fixture_gpu f;

	/* Slow enough for every lane to begin. */
	make(&f, CONFIG(.rings = 0xe, .bytes_per_second = 3e7), FILL_RANDOM, SIZES(16 * MIB));
	dump(&f, FIXTURE_MEMORY, 0);
	assert_int_equal(fake_drm_rings_used(), 0x6);
	end(&f);
}

/* Slots of a MiB and more are for two rings. */
TEST(a_window_waits_for_its_second_ring)
{
	static const uint64_t size = 128 * MIB;
	struct fixture_gpu f;

	make(&f, CONFIG(.rings = 3, .late_rings = 2, .delay_us = 2000), FILL_SPARSE, &size, 1);
	dump(&f, FIXTURE_MEMORY, 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	assert_restores(&f, 0);
	end(&f);
}

/* The kernel walks over the pages of each userptr BO in the list, at each submission. */
TEST(a_submission_lists_the_staging_of_its_slot_alone)
{
	static const uint64_t size = 256 * MIB;
	struct fixture_gpu f;

	make(&f, CONFIG(.rings = 3), FILL_ZERO, &size, 1);
	dump(&f, FIXTURE_DISK, 0);
	print_message("# pages listed: %.2f of each page of contents\n",
		      (double)fake_drm_user_pages_listed() / (double)(size / 4096));
	assert_in_range(fake_drm_user_pages_listed(), size / 4096, 2 * size / 4096 + size / 4096 / 10);
	end(&f);
}

/* ---- files of others, and files from before ---- */

TEST(files_of_the_existing_plugin_restore)
{
	struct fixture_gpu f;

	make(&f, &one_ring, FILL_MIXED, SIZES(3 * MIB, 4096, 300 * KIB));
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	fixture_write_file(f.gpu.pages_fd, &f);
	assert_restores(&f, 0);
	assert_said("gpu 0x1: 3 of 3 BOs were saved without a checksum");
	end(&f);
}

TEST(what_the_file_held_before_is_gone)
{
	static const uint64_t sizes[] = { 4096, 1 * MIB };
	struct fixture_gpu f;
	struct rng rng = { 17 };

	begin_gpus(&one_ring);
	fixture_gpu_init(&f, 1, sizes, 2, FILL_ZERO, &rng);
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	fixture_fill(f.gpu.pages_fd, 0 + (ftruncate(f.gpu.pages_fd, 3 * MIB) ? 0 : 3 * MIB), FILL_RANDOM, &rng);
	assert_int_equal(fixture_dump(&f.gpu, 1, 0), 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	end(&f);
}

TEST(flags_of_the_file_are_given_back)
{
	struct fixture_gpu f;
	int flags;

	make(&f, &one_ring, FILL_RANDOM, SIZES(1 * MIB));
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	flags = fcntl(f.gpu.pages_fd, F_GETFL);
	assert_int_equal(fixture_dump(&f.gpu, 1, 0), 0);
	assert_int_equal(fcntl(f.gpu.pages_fd, F_GETFL), flags);
	assert_restores(&f, 0);
	assert_int_equal(fcntl(f.gpu.pages_fd, F_GETFL), flags);
	end(&f);
}

/* ---- the caller's thread ---- */

struct progress {
	pthread_t thread;
	unsigned int calls;
	uint64_t last;
	bool wrong;
};

static void on_progress(void *arg, const struct content_gpu *gpu)
{
	struct progress *progress = arg;

	progress->calls++;
	progress->wrong |= !pthread_equal(pthread_self(), progress->thread) ||
			   gpu->stats.bytes < progress->last || gpu->stats.bytes > gpu->bos[0].size;
	progress->last = gpu->stats.bytes;
}

TEST(progress_is_told_to_the_caller)
{
	struct progress progress = { .thread = pthread_self() };
	const struct content_options options = {
		.on_progress = on_progress,
		.progress_arg = &progress,
		.progress_ms = 20,
	};
	struct fixture_gpu f;

	make(&f, CONFIG(.rings = 1, .delay_us = 10000), FILL_ZERO, SIZES(64 * MIB));
	f.gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
	assert_int_equal(content_copy(CONTENT_DUMP, &f.gpu, 1, &options), 0);
	assert_true(progress.calls >= 2); /* 32 windows of 10 ms each; a busy machine may be late */
	assert_true(progress.last > 0);
	assert_false(progress.wrong);
	end(&f);
}

/* Windows of all kinds, one after the other, so that the two I/O threads of a file in memory have each. */
TEST(two_io_threads_move_every_byte)
{
	static const uint64_t sizes[][3] = {
		{ 1, 1, 1 },
		{ BLOCK - PREFIX, 1, 3 },
		{ 16 * KIB - PREFIX, 16 * KIB, 1 },
		{ 3 * MIB + 5, 200 * KIB, BLOCK + 1 },
	};
	static const uint64_t caps[] = { 2 * BLOCK, 12 * KIB, 64 * KIB, 0 };
	struct rng rng = { 31 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(caps) * FILL_NR; i++) {
		const uint64_t *three = sizes[i / FILL_NR / ARRAY_SIZE(caps)];
		uint64_t cap = caps[i / FILL_NR % ARRAY_SIZE(caps)];
		struct fixture_gpu f;

		begin_gpus(&one_ring);
		fixture_gpu_init(&f, 1, three, 3, (enum fixture_fill)(i % FILL_NR), &rng);
		dump(&f, FIXTURE_MEMORY, cap);
		assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
		assert_int_equal(f.gpu.stats.bytes, f.bytes);
		assert_restores(&f, cap);
		end(&f);
	}
}

/* A hole that is longer than a window. */
TEST(zeros_of_several_windows_take_no_memory)
{
	struct fixture_gpu f;
	struct stat st;

	make(&f, &one_ring, FILL_ZERO, SIZES(8 * MIB, 5 * MIB + 7));
	put_byte(&f, 1, 2 * MIB);
	dump(&f, FIXTURE_MEMORY, 512 * KIB);
	assert_int_equal(fstat(f.gpu.pages_fd, &st), 0);
	assert_in_range(st.st_blocks * 512, 1, 2 * BLOCK); /* that byte and the length */
	assert_restores(&f, 256 * KIB);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	end(&f);
}

/* What a caller has for one GPU, which it does not have at first. */
struct source {
	struct content_gpu list[3];
	size_t nr_given;
	unsigned int nr_asked;
};

static int give_next(void *arg, struct content_gpu *gpu)
{
	struct source *source = arg;

	if (++source->nr_asked % 3)
		return -EAGAIN;
	if (source->nr_given == ARRAY_SIZE(source->list))
		return 0;
	*gpu = source->list[source->nr_given++];
	return 1;
}

TEST(a_gpu_gets_one_after_the_other_as_they_come)
{
	static const uint64_t size = 256 * KIB;
	struct content_gpu gpu = { .render_fd = -1, .pages_fd = -1 };
	struct content_tally tally = { 0 };
	struct fixture_gpu f[3], to[3];
	struct source source = { 0 };
	struct content_options options = { .next = give_next, .next_arg = &source, .tally = &tally };
	struct rng rng = { 31 };

	begin_gpus(&(struct fake_drm_config){ .rings = 1 });
	for (uint32_t i = 0; i < 3; i++) {
		fixture_gpu_init(&f[i], 7, &size, 1, FILL_RANDOM, &rng);
		f[i].gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
		source.list[i] = f[i].gpu;
	}
	assert_int_equal(content_copy(CONTENT_DUMP, &gpu, 1, &options), 0);
	assert_int_equal(source.nr_asked, 12);
	assert_int_equal(tally.bytes, 3 * size);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fixture_file_is_right(f[i].gpu.pages_fd, &f[i]));
		fixture_gpu_like(&to[i], &f[i]);
		source.list[i] = to[i].gpu;
		source.list[i].bos[0].has_crc32c = false;
	}
	source.nr_given = 0;
	assert_int_equal(content_copy(CONTENT_RESTORE, &gpu, 1, &options), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fixture_gpus_same(&f[i], &to[i]));
		fixture_gpu_done(&to[i]);
		if (i)
			fixture_gpu_done(&f[i]);
	}
	end(&f[0]);
}

TEST(several_gpus_and_empty_ones_are_done)
{
	static const struct content_options options;
	static const uint64_t size = 1 * MIB;
	struct fixture_gpu f[3], to[3];
	struct content_gpu gpus[3];
	struct rng rng = { 29 };

	begin_gpus(&one_ring);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_gpu_init(&f[i], i, &size, i == 1 ? 0 : 1, FILL_RANDOM, &rng);
		f[i].gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
		gpus[i] = f[i].gpu;
	}
	assert_int_equal(content_copy(CONTENT_DUMP, gpus, 3, &options), 0);
	for (uint32_t i = 0; i < 3; i++) {
		for (size_t b = 0; b < f[i].gpu.nr_bos; b++)
			assert_true(gpus[i].bos[b].has_crc32c);
		fixture_gpu_like(&to[i], &f[i]);
		gpus[i] = to[i].gpu;
	}
	assert_int_equal(content_copy(CONTENT_RESTORE, gpus, 3, &options), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fixture_gpus_same(&f[i], &to[i]));
		fixture_gpu_done(&to[i]);
		end(&f[i]);
	}
}

/* Of the memory that was registered: how often, and how often a child would have had it. */
static unsigned int nr_registered, nr_inherited;

static void look_from_child(void *cpu, uint64_t size)
{
	unsigned char resident;
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(!mincore(cpu, 4096, &resident)); /* it is not even mapped */
	nr_registered++;
	nr_inherited += pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

/* A write of either would give one of the two other pages than the GPU's. */
TEST(children_do_not_get_registered_memory)
{
	static const struct fake_drm_config looks = { .rings = 1, .registers = look_from_child };
	static const uint64_t size = 1 * MIB;
	struct rng rng = { 21 };
	struct fixture_gpu f;

	begin_gpus(&looks);
	nr_registered = nr_inherited = 0;
	fixture_gpu_init(&f, 1, &size, 1, FILL_RANDOM, &rng);
	dump(&f, FIXTURE_MEMORY, 0);
	assert_restores(&f, 0);
	end(&f);
	assert_true(nr_registered >= 2);
	assert_int_equal(nr_inherited, 0);
}

static pthread_t main_thread;
static volatile sig_atomic_t signals, signals_elsewhere;

static void on_signal(int nr)
{
	signals++;
	signals_elsewhere += !pthread_equal(pthread_self(), main_thread);
}

static void *send_signals(void *arg)
{
	volatile bool *stop = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		kill(getpid(), SIGUSR1);
		usleep(500);
	}
	return NULL;
}

TEST(signals_arrive_in_the_callers_thread_only)
{
	static const struct fake_drm_config slow = { .rings = 1, .delay_us = 5000 };
	static const uint64_t size = 64 * MIB;
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t before, after;
	struct fixture_gpu f;
	struct rng rng = { 20 };
	bool stop = false;
	pthread_t sender;

	begin_gpus(&slow);
	main_thread = pthread_self();
	fixture_gpu_init(&f, 1, &size, 1, FILL_ZERO, &rng);
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &stop), 0);
	assert_int_equal(fixture_dump(&f.gpu, 1, 0), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(sender, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int nr = 1; nr < SIGRTMIN; nr++)
		assert_int_equal(sigismember(&before, nr), sigismember(&after, nr));
	assert_true(signals > 10);
	assert_int_equal(signals_elsewhere, 0);
	signal(SIGUSR1, SIG_DFL);
	end(&f);
}

UNIT_MAIN(NULL, NULL)
