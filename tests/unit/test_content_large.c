// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large contents: a BO of 3 GiB, more than 4 GiB in all, 20,000 BOs. Sparse memfds, so
 * that little memory is needed where little is written.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "content_test.h"

static void end(struct fixture_gpu *f)
{
	assert_clean();
	fixture_gpu_done(f);
}

/* A GPU with a single BO, empty. */
static void one_bo(struct fixture_gpu *f, uint64_t size)
{
	static const uint64_t page = 4096;
	struct rng rng = { 1 };

	fixture_gpu_init(f, 0x33, &page, 1, FILL_ZERO, &rng);
	assert_int_equal(ftruncate(f->gpu.bos[0].dmabuf_fd, (off_t)size), 0);
	f->gpu.bos[0].size = size;
	f->bytes = size;
}

static const uint64_t places[] = { 0, 123456789, 2 * GIB - 4, 2 * GIB + 32 * MIB - 8, 3 * GIB - 16 };

/* Text across the places where 31 bits end, and where windows do. */
static void write_marks(int fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		assert_int_equal(pwrite(fd, "0123456789abcdef", 16, (off_t)places[i]), 16);
}

static void check_marks(int fd, off_t shift)
{
	char buf[16];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		assert_int_equal(pread(fd, buf, 16, (off_t)places[i] + shift), 16);
		assert_memory_equal(buf, "0123456789abcdef", 16);
	}
}

static bool have_memory(uint64_t bytes)
{
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024 >= bytes;
}

static uint64_t resident_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

/* The first one, since it looks at peak memory. Packets are checked, but not executed: all is zero anyway. */
TEST(offsets_beyond_4_gib_are_exact)
{
	static const struct fake_drm_config idle = { .rings = 3, .idle = true };
	struct fixture_gpu f;
	uint64_t before = resident_bytes();
	struct stat st;

	begin_gpus(&idle);
	one_bo(&f, 9 * GIB + 12345);
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	assert_int_equal(fixture_dump(&f.gpu, 1, 64 * MIB), 0);
	assert_int_equal(f.gpu.stats.bytes, 9 * GIB + 12345);
	assert_int_equal(f.gpu.bos[0].crc32c, crc32c_zeros(0, 9 * GIB + 12345));
	assert_int_equal(fstat(f.gpu.pages_fd, &st), 0);
	assert_int_equal(st.st_size, 9 * GIB + 12345 + 8);
	assert_int_equal(fixture_restore(&f.gpu, 1, 64 * MIB), 0);
	assert_true(fake_drm_fill_bytes() >= 9 * GIB);
#ifndef __SANITIZE_THREAD__ /* its shadow memory counts, too */
	/* Memory does not grow with the BO. */
	assert_true(resident_bytes() - before < 64 * MIB + 16 * MIB);
#else
	(void)before;
#endif
	close(f.gpu.pages_fd);
	end(&f);
}

TEST(a_bo_of_3_gib_comes_back)
{
	struct fixture_gpu f, to;
	struct stat st;
	int file;

	if (!have_memory(5 * GIB)) {
		print_message("skipped: a memfd of 3 GiB is filled, which needs 5 GiB of free memory\n");
		skip();
	}
	begin_gpus(&one_ring);
	file = fixture_file(FIXTURE_DISK);
	one_bo(&f, 3 * GIB);
	assert_int_equal(ftruncate(f.gpu.bos[0].dmabuf_fd, 3 * GIB), 0);
	write_marks(f.gpu.bos[0].dmabuf_fd);
	f.gpu.pages_fd = file;
	assert_int_equal(fixture_dump(&f.gpu, 1, 0), 0);
	assert_int_equal(f.gpu.stats.bytes, 3 * GIB);
	check_marks(file, 8);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 3 * GIB + 8);
	assert_true(st.st_blocks * 512 <= (blkcnt_t)(64 << 10));
	one_bo(&to, 3 * GIB);
	to.gpu.bos[0].crc32c = f.gpu.bos[0].crc32c;
	to.gpu.bos[0].has_crc32c = true;
	to.gpu.pages_fd = file;
	end(&f); /* the one memfd before the other */
	assert_int_equal(fixture_restore(&to.gpu, 1, 0), 0);
	check_marks(to.gpu.bos[0].dmabuf_fd, 0);
	close(file);
	end(&to);
}

enum { NR_BOS = 20000, NR_FILES = 5000 };

/* More BOs than files may be open: every dma-buf is given several times. */
static void repeat_bos(struct fixture_gpu *f)
{
	struct content_bo *bos = realloc(f->gpu.bos, NR_BOS * sizeof(*bos));

	assert_non_null(bos);
	f->gpu.bos = bos;
	for (; f->gpu.nr_bos < NR_BOS; f->gpu.nr_bos++) {
		bos[f->gpu.nr_bos] = bos[f->gpu.nr_bos - NR_FILES];
		bos[f->gpu.nr_bos].index += NR_FILES;
		f->bytes += bos[f->gpu.nr_bos].size;
	}
}

static void own_bos_only(struct fixture_gpu *f)
{
	for (; f->gpu.nr_bos > NR_FILES; f->gpu.nr_bos--)
		f->bytes -= f->gpu.bos[f->gpu.nr_bos - 1].size;
}

static void allow_many_files(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 2 * NR_FILES + 100) {
		print_message("skipped: at most %llu files can be open, %d are needed\n",
			      (unsigned long long)limit.rlim_cur, 2 * NR_FILES + 100);
		skip();
	}
}

TEST(twenty_thousand_bos_come_back)
{
	static uint64_t sizes[NR_FILES];
	struct fixture_gpu f, to;
	struct rng rng = { 3 };

	allow_many_files();
	for (int i = 0; i < NR_FILES; i++)
		sizes[i] = 4096 * (1 + rng_below(&rng, 3));
	begin_gpus(&one_ring);
	fixture_gpu_init(&f, 0x34, sizes, NR_FILES, FILL_RANDOM, &rng);
	f.gpu.pages_fd = fixture_file(FIXTURE_DISK);
	fixture_gpu_like(&to, &f);
	repeat_bos(&f);
	assert_int_equal(fixture_dump(&f.gpu, 1, 0), 0);
	assert_true(fixture_file_is_right(f.gpu.pages_fd, &f));
	repeat_bos(&to);
	for (size_t i = 0; i < NR_BOS; i++) {
		to.gpu.bos[i].crc32c = f.gpu.bos[i].crc32c;
		to.gpu.bos[i].has_crc32c = true;
	}
	assert_int_equal(fixture_restore(&to.gpu, 1, 0), 0);
	assert_true(fake_drm_submissions() <= 2 * 130); /* of windows, 128 for such contents, not of BOs */
	own_bos_only(&f);
	own_bos_only(&to);
	assert_true(fixture_gpus_same(&f, &to));
	close(f.gpu.pages_fd);
	fixture_gpu_done(&to);
	end(&f);
}

UNIT_MAIN(NULL, NULL)
