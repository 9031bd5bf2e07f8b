// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-native: how close the content engine comes to a plain multi-buffered copy loop, on
 * a file system in memory and on a disk, and how well it overlaps copying with transfers.
 *
 * The GPUs are the stand-in of the unit tests, which executes SDMA packets by memcpy, so
 * the figures say what the engine costs, and nothing about real hardware. Each pair is
 * measured in turn, several times: the table has the best times and the median quotient.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "content/content.h"
#include "amdgpu_plugin_util.h"
#include "content_fixture.h"
#include "content_reference.h"
#include "fake_drm.h"

#define KIB	    1024ull
#define MIB	    (1024 * KIB)
#define MAX_GPUS    2
#define MAX_RUNS    32
#define MAX_REPEATS 99
#define RATIO_GOAL  0.8	  /* reference time / engine time */
#define OVERLAP_MAX 1.05  /* time / max(copy, transfer) */
#define EQUAL_RATE  400e6 /* bytes per second, slower than either part is by itself */
#define ZEROS_MAX   0.11  /* bytes on disk / bytes, for 90 % zeros */
#define CPU_MAX	    0.05  /* seconds of processors for a GB, without copies and transfers */
#define MEMORY_MAX  0.25  /* seconds of processors for a GiB into huge pages of memory */
#define LISTED_MAX  2.1	  /* pages in the lists of submissions / pages of the contents */
#define SECOND_GOAL 1.8	  /* time with one lane / with two, where each transfer waits */
#define DELAY_US    5000  /* of each transfer that waits */

static void print_line(unsigned int level, const char *fmt, ...)
{
	va_list args;

	if (level > PLUGIN_LOG_WARN)
		return;
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(print_line);
}

/* ---- files of a given speed: pread and pwrite are wrapped by the linker ---- */

static double file_rate; /* bytes per second, 0 = as fast as they are */
/* With a rate, a file makes one transfer after the other, however many threads ask. */
static struct slow_file {
	ino_t ino;
	double free_at;
} slow_files[MAX_GPUS];
static pthread_mutex_t slow_files_lock = PTHREAD_MUTEX_INITIALIZER;
static bool file_idle;		 /* transfers are left out, but for the length */
static useconds_t file_delay_us; /* before each transfer, but for that of the length */
static bool refuses_seconds;	 /* the engine gets no second lane */

static void delay(size_t n)
{
	if (file_delay_us && n > LENGTH_PREFIX_BYTES)
		usleep(file_delay_us);
}

/* When a file of file_rate has ended a transfer that was asked for at @start. */
static double end_of_transfer(int fd, double start, ssize_t bytes)
{
	struct slow_file *file = slow_files;
	struct stat st;
	double ret;

	if (fstat(fd, &st))
		abort();
	while (file->ino != st.st_ino)
		if (++file == slow_files + MAX_GPUS)
			abort();
	pthread_mutex_lock(&slow_files_lock);
	ret = file->free_at = (file->free_at > start ? file->free_at : start) + (double)bytes / file_rate;
	pthread_mutex_unlock(&slow_files_lock);
	return ret;
}

static ssize_t slow_down(int fd, double start, ssize_t bytes)
{
	double until = bytes > 0 && file_rate > 0 ? end_of_transfer(fd, start, bytes) : 0, rest;

	while ((rest = until - monotonic_seconds()) > 0)
		usleep((useconds_t)(rest * 1e6) + 1);
	return bytes;
}

ssize_t __real_pwrite(int fd, const void *buf, size_t n, off_t off);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t n, off_t off);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	double start = monotonic_seconds();

	delay(n);
	if (file_idle && n > LENGTH_PREFIX_BYTES)
		return (ssize_t)n;
	return slow_down(fd, start, __real_pwrite(fd, buf, n, off));
}

ssize_t __real_pread(int fd, void *buf, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off)
{
	double start = monotonic_seconds();

	delay(n);
	return slow_down(fd, start, __real_pread(fd, buf, n, off));
}

/* The engine's threads are started by the main thread, but for the second that transfers. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (refuses_seconds && !fake_drm_depth && gettid() != getpid())
		return EAGAIN;
	return __real_pthread_create(thread, attr, fn, arg);
}

/* ---- what is measured ---- */

struct bench_case {
	const char *name;
	unsigned int nr_gpus, nr_bos; /* BOs of each GPU */
	uint64_t bo_bytes;
	bool mostly_zero;
};

static const struct bench_case cases[] = {
	{ "1 GPU x 1 GiB", 1, 1, 1024 * MIB, false },
	{ "2 GPUs x 512 MiB", 2, 1, 512 * MIB, false },
	{ "4096 BOs x 64 KiB", 1, 4096, 64 * KIB, false },
	{ "1 GiB, 90 % zeros", 1, 1, 1024 * MIB, true },
};

/* One line of the table. */
struct result {
	const char *name, *dir, *direction;
	uint64_t bytes, disk_bytes;
	double engine, reference, ratio, overlap; /* seconds, seconds, quotients; 0 = not measured */
	double engine_cpu, reference_cpu;	  /* seconds of processors, which other load changes less */
	bool good;
};

static struct result results[MAX_RUNS];
static size_t nr_results;
static unsigned int repeats = 5;
static uint64_t divide_by = 1;

struct setup {
	const struct bench_case *c;
	const char *dir;
	unsigned int nr_bos;
	uint64_t gpu_bytes;
	struct fixture_gpu f[MAX_GPUS];
	uint8_t *plain[MAX_GPUS]; /* memory for the reference: as many bytes in one piece */
	int files[MAX_GPUS];
};

static void die(const char *what, int err)
{
	fprintf(stderr, "bench-native: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* Runs of 256 KiB, of which one in ten has data. */
static void fill_tenth(int fd, uint64_t bytes, struct rng *rng)
{
	static uint64_t data[256 * KIB / 8];

	for (uint64_t off = 0; off + sizeof(data) <= bytes; off += 10 * sizeof(data)) {
		for (size_t i = 0; i < ARRAY_SIZE(data); i++)
			data[i] = rng_next(rng) | 1;
		if (pwrite(fd, data, sizeof(data), (off_t)off) != (ssize_t)sizeof(data))
			die("filling memory", errno_or_eio());
	}
}

/*
 * The memory of GPUs is there, as that of real ones would be: page faults of the stand-in, a call of mmap() for each
 * BO, are not measured, for neither side.
 */
static void **memory_by_fd;
static size_t nr_memory_by_fd;

static void *memory_of(int fd)
{
	return (size_t)fd < nr_memory_by_fd ? memory_by_fd[fd] : NULL;
}

static uint8_t *map_now(int fd, uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (mem == MAP_FAILED)
		die("mapping memory", errno_or_eio());
	return mem;
}

static void map_bos(const struct content_gpu *gpu)
{
	for (size_t b = 0; b < gpu->nr_bos; b++) {
		size_t fd = (size_t)gpu->bos[b].dmabuf_fd;

		while (fd >= nr_memory_by_fd) {
			memory_by_fd = realloc(memory_by_fd, (nr_memory_by_fd + 1) * sizeof(*memory_by_fd));
			if (!memory_by_fd)
				die("preparing BOs", -ENOMEM);
			memory_by_fd[nr_memory_by_fd++] = NULL;
		}
		memory_by_fd[fd] = map_now((int)fd, gpu->bos[b].size);
	}
}

static void unmap_bos(const struct content_gpu *gpu)
{
	for (size_t b = 0; b < gpu->nr_bos; b++) {
		munmap(memory_of(gpu->bos[b].dmabuf_fd), gpu->bos[b].size);
		memory_by_fd[gpu->bos[b].dmabuf_fd] = NULL;
	}
}

static uint8_t *random_memory(uint64_t bytes, struct rng *rng)
{
	int fd = fixture_memfd(bytes);
	uint8_t *mem;

	fixture_fill(fd, bytes, FILL_RANDOM, rng);
	mem = map_now(fd, bytes);
	close(fd);
	return mem;
}

static void setup_gpu(struct setup *s, unsigned int i)
{
	struct rng rng = { 100 + i };
	uint64_t *sizes = calloc(s->nr_bos, sizeof(*sizes));

	if (!sizes)
		die("preparing BOs", -ENOMEM);
	for (unsigned int b = 0; b < s->nr_bos; b++)
		sizes[b] = s->gpu_bytes / s->nr_bos;
	fixture_gpu_init(&s->f[i], 0x10 + i, sizes, s->nr_bos, s->c->mostly_zero ? FILL_ZERO : FILL_RANDOM, &rng);
	if (s->c->mostly_zero)
		fill_tenth(s->f[i].gpu.bos[0].dmabuf_fd, s->gpu_bytes, &rng);
	map_bos(&s->f[i].gpu);
	s->plain[i] = random_memory(s->gpu_bytes, &rng);
	s->files[i] = -1;
	free(sizes);
}

static void done_gpu(struct setup *s, unsigned int i)
{
	unmap_bos(&s->f[i].gpu);
	fixture_gpu_done(&s->f[i]);
	munmap(s->plain[i], s->gpu_bytes);
	close(s->files[i]);
}

static void new_files(struct setup *s)
{
	for (unsigned int i = 0; i < s->c->nr_gpus; i++) {
		if (s->files[i] >= 0)
			close(s->files[i]);
		s->files[i] = fixture_file(s->dir);
		s->f[i].gpu.pages_fd = s->files[i];
	}
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double least(double a, double b)
{
	return !a || b < a ? b : a;
}

static void slow_files_begin(const struct setup *s)
{
	struct stat st;

	for (unsigned int i = 0; i < s->c->nr_gpus; i++) {
		if (fstat(s->files[i], &st))
			die("a file", errno_or_eio());
		slow_files[i] = (struct slow_file){ .ino = st.st_ino };
	}
	file_rate = EQUAL_RATE;
}

/* The least of *cpu, unless NULL, and of what this run needs goes there. */
static double run_reference(struct setup *s, bool dump, double *cpu)
{
	struct reference_stream streams[MAX_GPUS];
	double seconds, cpu_before = cpu_seconds();
	int err;

	for (unsigned int i = 0; i < s->c->nr_gpus; i++)
		streams[i] = (struct reference_stream){
			.mem = s->plain[i],
			.file = s->files[i],
			.bytes = s->gpu_bytes,
			.to_file = dump,
			.direct = fixture_takes_direct(s->files[i]),
			.nr_buffers = 4,
			.buffer_bytes = 32 * MIB,
		};
	seconds = reference_run(streams, s->c->nr_gpus, &err);
	if (err)
		die("the reference", err);
	if (cpu)
		*cpu = least(*cpu, cpu_seconds() - cpu_before);
	return seconds;
}

static double run_engine(struct setup *s, bool dump, double bytes_per_second, double *cpu)
{
	const struct fake_drm_config config = { .rings = 1,
						.bytes_per_second = bytes_per_second,
						.memory_of = memory_of };
	struct content_gpu gpus[MAX_GPUS];
	double start, cpu_before = cpu_seconds();
	int err;

	fake_drm_begin(&config);
	for (unsigned int i = 0; i < s->c->nr_gpus; i++)
		gpus[i] = s->f[i].gpu;
	start = monotonic_seconds();
	err = dump ? fixture_dump(gpus, s->c->nr_gpus, 0) : fixture_restore(gpus, s->c->nr_gpus, 0);
	if (err)
		die("the engine", err);
	if (fake_drm_violation())
		die(fake_drm_violation(), -EINVAL);
	if (cpu)
		*cpu = least(*cpu, cpu_seconds() - cpu_before);
	return monotonic_seconds() - start;
}

static struct result *add_result(const struct setup *s, const char *direction)
{
	struct result *r = &results[nr_results++];

	*r = (struct result){ .name = s->c->name, .dir = s->dir, .direction = direction };
	r->bytes = s->gpu_bytes * s->c->nr_gpus;
	return r;
}

static uint64_t bytes_on_disk(const struct setup *s)
{
	uint64_t bytes = 0;
	struct stat st;

	for (unsigned int i = 0; i < s->c->nr_gpus; i++)
		if (fstat(s->files[i], &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t nr)
{
	qsort(values, nr, sizeof(*values), compare_doubles);
	return nr % 2 ? values[nr / 2] : (values[nr / 2 - 1] + values[nr / 2]) / 2;
}

static void measure(struct setup *s, bool dump)
{
	struct result *r = add_result(s, dump ? "dump" : "restore");
	double ratios[MAX_REPEATS];

	for (unsigned int n = 0; n < repeats; n++) {
		double reference, engine;

		if (dump)
			new_files(s);
		else
			run_reference(s, true, NULL); /* so that there is a file to read */
		reference = run_reference(s, dump, &r->reference_cpu);
		new_files(s);
		if (!dump)
			run_engine(s, true, 0, NULL);
		engine = run_engine(s, dump, 0, &r->engine_cpu);
		r->reference = least(r->reference, reference);
		r->engine = least(r->engine, engine);
		ratios[n] = reference / engine;
	}
	r->disk_bytes = bytes_on_disk(s);
	r->ratio = median(ratios, repeats);
	r->good = r->ratio >= RATIO_GOAL;
	if (s->c->mostly_zero)
		r->good = r->good && (double)r->disk_bytes <= ZEROS_MAX * (double)r->bytes;
}

/* Engine and file as fast as each other: an ideal pipeline takes as long as one of them, one after the other twice
 * that. */
static void measure_overlap(struct setup *s, bool dump)
{
	struct result *r = add_result(s, dump ? "dump, equal rates" : "restore, equal rates");
	double ideal = (double)s->gpu_bytes / EQUAL_RATE;

	for (unsigned int n = 0; n < repeats; n++) {
		new_files(s);
		if (!dump)
			run_engine(s, true, 0, NULL);
		slow_files_begin(s);
		r->engine = least(r->engine, run_engine(s, dump, EQUAL_RATE, NULL));
		file_rate = 0;
	}
	r->overlap = r->engine / ideal;
	r->good = r->overlap <= OVERLAP_MAX;
}

/* ---- the engine alone ---- */

static struct {
	double cpu_per_gb, memory_per_gb, listed;
} alone;

/* Of the stand-in's filling, which no GPU has a processor do. */
static double fill_seconds;

static double thread_cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Nothing is copied there, and zeros would cost less than data. */
static void fill_staging(void *cpu, uint64_t size)
{
	double before = thread_cpu_seconds();

	memset(cpu, 0x5a, size);
	fill_seconds += thread_cpu_seconds() - before;
}

/* What each byte of a dump costs the processors, in which GPUs do nothing. */
static void measure_cpu(const char *dir, double *ret_cpu_per_gb)
{
	const struct fake_drm_config config = { .rings = 1, .idle = true, .memory_of = memory_of, .registers = fill_staging };
	struct setup s = { .c = &cases[0], .dir = dir, .nr_bos = 1, .gpu_bytes = cases[0].bo_bytes / divide_by };
	struct content_gpu gpu;
	double before;
	int err;

	setup_gpu(&s, 0);
	for (unsigned int n = 0; n < repeats; n++) {
		new_files(&s);
		fake_drm_begin(&config);
		gpu = s.f[0].gpu;
		fill_seconds = 0;
		before = cpu_seconds();
		err = fixture_dump(&gpu, 1, 0);
		if (err)
			die("the engine alone", err);
		*ret_cpu_per_gb = least(*ret_cpu_per_gb, (cpu_seconds() - before - fill_seconds) * 1e9 / (double)s.gpu_bytes);
		alone.listed = (double)fake_drm_user_pages_listed() * 4096 / (double)s.gpu_bytes;
	}
	done_gpu(&s, 0);
}

/* Without files, too. */
static void measure_alone(const char *dir)
{
	file_idle = true;
	measure_cpu(dir, &alone.cpu_per_gb);
	file_idle = false;
}

/* Into a tmpfs as a suspend mounts it, which nobody else sees. */
static void measure_memory(void)
{
	char dir[] = "/tmp/content_native.XXXXXX";

	if (!mkdtemp(dir))
		die(dir, -errno);
	if (!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("none", dir, "tmpfs", 0, "huge=within_size,mode=0700")) {
		measure_cpu(dir, &alone.memory_per_gb);
		alone.memory_per_gb *= (double)(1 << 30) / 1e9;
		umount2(dir, MNT_DETACH);
	}
	rmdir(dir);
}

static bool print_memory(void)
{
	bool good = alone.memory_per_gb <= MEMORY_MAX;

	if (!alone.memory_per_gb)
		printf("a dump into a tmpfs with huge pages: not measured, only root may mount one\n");
	else
		printf("a dump into a tmpfs with huge pages: %.3f s of processors for a GiB, checksums included (goal <= %.2f)%s\n",
		       alone.memory_per_gb, MEMORY_MAX, good ? "" : "  <- misses its goal");
	return good;
}

static bool print_alone(void)
{
	bool good = alone.cpu_per_gb <= CPU_MAX && alone.listed <= LISTED_MAX;

	printf("a dump without copies and transfers: %.3f s of processors for a GB (goal <= %.2f), %.2f times its pages in "
	       "the lists of submissions (goal <= %.1f)%s\n",
	       alone.cpu_per_gb, CPU_MAX, alone.listed, LISTED_MAX, good ? "" : "  <- misses its goal");
	return good;
}

/* ---- two lanes, and warm images: quotients of two runs of the engine ---- */

struct quotient {
	const char *name, *dir;
	double slow, fast; /* seconds, the least */
	double goal;	   /* 0: none, as it depends on the disk */
	double ratio;		 /* the median */
};

static struct quotient quotients[8];
static size_t nr_quotients;

static void add_quotient(const char *name, const char *dir, double goal, double pairs[][2])
{
	struct quotient *q = &quotients[nr_quotients++];
	double ratios[MAX_REPEATS];

	*q = (struct quotient){ .name = name, .dir = dir, .goal = goal };
	for (unsigned int n = 0; n < repeats; n++) {
		q->slow = least(q->slow, pairs[n][0]);
		q->fast = least(q->fast, pairs[n][1]);
		ratios[n] = pairs[n][0] / pairs[n][1];
	}
	q->ratio = median(ratios, repeats);
}

/* In memory, as the second thread depends on where the file is. */
static void measure_second(bool dump)
{
	struct setup s = { .c = &cases[0], .dir = FIXTURE_MEMORY, .nr_bos = 1, .gpu_bytes = 512 * MIB / divide_by };
	double pairs[MAX_REPEATS][2];

	setup_gpu(&s, 0);
	for (unsigned int n = 0; n < repeats; n++)
		for (int two = 0; two < 2; two++) {
			new_files(&s);
			if (!dump)
				run_engine(&s, true, 0, NULL);
			refuses_seconds = !two;
			file_delay_us = DELAY_US;
			pairs[n][two] = run_engine(&s, dump, 0, NULL);
			file_delay_us = 0;
			refuses_seconds = false;
		}
	done_gpu(&s, 0);
	add_quotient(dump ? "dump, 5 ms a transfer: one lane / two"
			  : "restore, 5 ms a transfer: one lane / two",
		     s.dir, SECOND_GOAL, pairs);
}

/* Leaves the file in the page cache, or all of it but the beginning on the disk alone. */
static void warm_up(int fd, bool warm)
{
	static char buf[MIB];

	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("emptying the page cache", errno_or_eio());
	for (off_t off = 0; warm && __real_pread(fd, buf, sizeof(buf), off) > 0; off += (off_t)sizeof(buf))
		;
}

static void measure_warm(const char *dir)
{
	struct setup s = { .c = &cases[0], .dir = dir, .nr_bos = 1, .gpu_bytes = cases[0].bo_bytes / divide_by };
	double pairs[MAX_REPEATS][2];

	setup_gpu(&s, 0);
	new_files(&s);
	run_engine(&s, true, 0, NULL);
	for (unsigned int n = 0; n < repeats; n++)
		for (int warm = 0; warm < 2; warm++) {
			warm_up(s.files[0], warm);
			pairs[n][warm] = run_engine(&s, false, 0, NULL);
		}
	done_gpu(&s, 0);
	add_quotient("restore: by direct reads / from the page cache", dir, 0, pairs);
}

static bool takes_direct(const char *dir)
{
	int fd = fixture_file(dir);
	bool ret = fixture_takes_direct(fd);

	close(fd);
	return ret;
}

static void measure_quotients(const char *const *dirs)
{
	measure_second(true);
	measure_second(false);
	for (; *dirs && nr_quotients < ARRAY_SIZE(quotients); dirs++)
		if (takes_direct(*dirs))
			measure_warm(*dirs);
}

static bool print_quotients(void)
{
	bool good = true;

	for (const struct quotient *q = quotients; q < quotients + nr_quotients; q++) {
		printf("%-48s %-10s %.3f s / %.3f s, median of pairs %.2f", q->name, q->dir, q->slow, q->fast, q->ratio);
		if (q->goal)
			printf(" (goal >= %.1f)%s", q->goal, q->ratio >= q->goal ? "" : "  <- misses its goal");
		printf("\n");
		good &= q->ratio >= q->goal;
	}
	return good;
}

static void run_case(const struct bench_case *c, const char *dir)
{
	struct setup s = { .c = c, .dir = dir };

	s.nr_bos = c->nr_bos > divide_by ? c->nr_bos / (unsigned int)(c->nr_bos > 1 ? divide_by : 1) : c->nr_bos;
	s.gpu_bytes = c->bo_bytes * c->nr_bos / divide_by;
	for (unsigned int i = 0; i < c->nr_gpus; i++)
		setup_gpu(&s, i);
	for (int dump = 1; dump >= 0; dump--) {
		measure(&s, dump);
		if (c->nr_bos == 1 && !c->mostly_zero)
			measure_overlap(&s, dump);
	}
	for (unsigned int i = 0; i < c->nr_gpus; i++)
		done_gpu(&s, i);
}

static bool print_table(void)
{
	bool good = true;

	printf("%-20s %-10s %-20s %8s %10s %10s %8s %8s %12s\n", "contents", "directory", "", "MB", "engine s",
	       "plain s", "plain/e.", "overlap", "CPU plain/e.");
	for (size_t i = 0; i < nr_results; i++) {
		const struct result *r = &results[i];

		printf("%-20s %-10s %-20s %8.0f %10.3f ", r->name, r->dir, r->direction, (double)r->bytes / 1e6,
		       r->engine);
		if (r->overlap)
			printf("%10s %8s %8.2f", "", "", r->overlap);
		else
			printf("%10.3f %8.2f %8s %12.2f", r->reference, r->ratio, "", r->reference_cpu / r->engine_cpu);
		printf("%s\n", r->good ? "" : "  <- misses its goal");
		good &= r->good;
	}
	printf("goals: plain/engine >= %.1f, overlap (time / time of the slower alone) <= %.2f, 90 %% zeros <= %.2f of "
	       "the bytes on disk\n",
	       RATIO_GOAL, OVERLAP_MAX, ZEROS_MAX);
	return good;
}

static void write_json(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		die(path, errno_or_eio());
	fprintf(f, "{\"hardware\": \"simulated by memcpy\", \"cpu_s_per_gb\": %.4f, \"memory_cpu_s_per_gib\": %.4f, \"pages_listed\": %.3f, \"results\": [\n",
		alone.cpu_per_gb, alone.memory_per_gb, alone.listed);
	for (size_t i = 0; i < nr_results; i++) {
		const struct result *r = &results[i];

		fprintf(f,
			"  {\"contents\": \"%s\", \"directory\": \"%s\", \"direction\": \"%s\", \"bytes\": %llu, "
			"\"disk_bytes\": %llu, \"engine_s\": %.4f, \"plain_s\": %.4f, "
			"\"engine_cpu_s\": %.4f, \"plain_cpu_s\": %.4f, \"ratio\": %.3f, \"overlap\": %.3f, \"good\": "
			"%s}%s\n",
			r->name, r->dir, r->direction, (unsigned long long)r->bytes, (unsigned long long)r->disk_bytes,
			r->engine, r->reference, r->engine_cpu, r->reference_cpu, r->ratio, r->overlap,
			r->good ? "true" : "false", i + 1 < nr_results ? "," : "");
	}
	fprintf(f, "], \"quotients\": [\n");
	for (const struct quotient *q = quotients; q < quotients + nr_quotients; q++)
		fprintf(f, "  {\"what\": \"%s\", \"directory\": \"%s\", \"ratio\": %.3f, \"goal\": %.1f}%s\n", q->name,
			q->dir, q->ratio, q->goal, q + 1 < quotients + nr_quotients ? "," : "");
	fprintf(f, "]}\n");
	if (fclose(f))
		die(path, errno_or_eio());
}

static void usage(void)
{
	fprintf(stderr,
		"usage: content_native [--repeats N] [--divide N] [--json FILE] [DIRECTORY...]\n"
		"  Measures the content engine in the directories (default: " FIXTURE_MEMORY " and " FIXTURE_DISK ").\n"
		"  --divide N makes all contents N times smaller. The exit status is 1 when a goal is missed.\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "repeats", required_argument, NULL, 'r' },
		{ "divide", required_argument, NULL, 'd' },
		{ "json", required_argument, NULL, 'j' },
		{ 0 },
	};
	static const char *default_dirs[] = { FIXTURE_MEMORY, FIXTURE_DISK, NULL };
	const char *json = NULL, *const *dirs = default_dirs;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r' && atoi(optarg) > 0 && atoi(optarg) <= MAX_REPEATS)
			repeats = (unsigned int)atoi(optarg);
		else if (opt == 'd' && atoi(optarg) > 0)
			divide_by = (uint64_t)atoi(optarg);
		else if (opt == 'j')
			json = optarg;
		else
			usage();
	}
	if (optind < argc)
		dirs = (const char *const *)argv + optind;
	measure_memory();
	measure_alone(dirs[0]);
	measure_quotients(dirs);
	for (; *dirs && nr_results + 8 <= MAX_RUNS; dirs++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			run_case(&cases[i], *dirs);
	if (json)
		write_json(json);
	return print_table() & print_alone() & print_memory() & print_quotients() ? 0 : 1;
}
