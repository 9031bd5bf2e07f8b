// SPDX-License-Identifier: GPL-2.0-only
/*
 * The content engine on device files, through the real libdrm: BOs are made in VRAM of
 * the first GPUs of the machine, filled, dumped into files, restored into new BOs and
 * compared. Meant for the simulated GPUs of tests/asicsim; real ones do as well.
 *
 * BOs are made in render-node files of this program's own, by plain ioctls: libdrm would
 * give the engine the same file, and a BO that it has already.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdrm/amdgpu_drm.h>
#include <xf86drm.h>

#include "content/content.h"
#include "amdgpu_plugin_util.h"
#include "content_reference.h"

#define MAX_GPUS     8
#define FIRST_MINOR  128
#define LAST_MINOR   191
#define RUN_BYTES    (256u << 10) /* of data or of zeros */
#define PERCENT_RUNS 10		  /* runs after which the pattern of zeros repeats */

static struct {
	unsigned int nr_gpus, nr_bos;
	uint64_t bo_bytes, max_bytes;
	unsigned int zeros;	     /* tenths of the contents */
	double copy_rate, disk_rate; /* MB/s that the machine is limited to, 0 = unknown */
	const char *dir, *name;
	bool quiet;
} config = { .nr_gpus = 1, .nr_bos = 1, .bo_bytes = 64 << 20, .dir = "/tmp", .name = "contents" };

struct bench_gpu {
	int render_fd; /* of the BOs */
	uint32_t minor;
	struct content_bo *saved, *restored;
	uint32_t *handles; /* of saved, then of restored */
	struct content_gpu gpu;
	char path[256];
};

static void print_line(unsigned int level, const char *fmt, ...)
{
	va_list args;

	if (config.quiet && level > PLUGIN_LOG_WARN)
		return;
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(print_line);
}

static void die(const char *what, int err)
{
	fprintf(stderr, "content_device: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* ---- BOs ---- */

static void make_bo(struct bench_gpu *g, struct content_bo *bo, uint32_t *ret_handle)
{
	union drm_amdgpu_gem_create create = { .in = { .bo_size = config.bo_bytes,
						       .alignment = 4096,
						       .domains = AMDGPU_GEM_DOMAIN_VRAM,
						       .domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED } };

	if (drmCommandWriteRead(g->render_fd, DRM_AMDGPU_GEM_CREATE, &create, sizeof(create)))
		die("making a BO in VRAM", errno_or_eio());
	*ret_handle = create.out.handle;
	bo->size = config.bo_bytes;
	if (drmPrimeHandleToFD(g->render_fd, *ret_handle, DRM_CLOEXEC | DRM_RDWR, &bo->dmabuf_fd))
		die("exporting a BO", errno_or_eio());
}

static uint64_t *map_bo(const struct bench_gpu *g, uint32_t handle)
{
	union drm_amdgpu_gem_mmap where = { .in = { .handle = handle } };
	void *mem;

	if (drmCommandWriteRead(g->render_fd, DRM_AMDGPU_GEM_MMAP, &where, sizeof(where)))
		die("asking where to map a BO", errno_or_eio());
	mem = mmap(NULL, config.bo_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->render_fd, (off_t)where.out.addr_ptr);
	if (mem == MAP_FAILED)
		die("mapping a BO", errno_or_eio());
	return mem;
}

/* What the word at @i of the @bo-th BO of the GPU is: different everywhere, or zero. */
static uint64_t word(const struct bench_gpu *g, size_t bo, uint64_t i)
{
	uint64_t at = bo * config.bo_bytes + i * 8;

	if (at / RUN_BYTES % PERCENT_RUNS < config.zeros)
		return 0;
	return ((uint64_t)g->minor << 56 | at) * 0x9e3779b97f4a7c15u;
}

static void fill(struct bench_gpu *g, size_t bo)
{
	uint64_t *mem = map_bo(g, g->handles[bo]);

	for (uint64_t i = 0; i < config.bo_bytes / 8; i++)
		mem[i] = word(g, bo, i);
	munmap(mem, config.bo_bytes);
}

static void check(struct bench_gpu *g, size_t bo)
{
	uint64_t *mem = map_bo(g, g->handles[config.nr_bos + bo]);

	for (uint64_t i = 0; i < config.bo_bytes / 8; i++)
		if (mem[i] != word(g, bo, i)) {
			fprintf(stderr, "content_device: renderD%u, BO %zu, byte %llu: %016llx, saved was %016llx\n",
				g->minor, bo, (unsigned long long)i * 8, (unsigned long long)mem[i],
				(unsigned long long)word(g, bo, i));
			exit(1);
		}
	munmap(mem, config.bo_bytes);
}

/* ---- GPUs ---- */

static int open_minor(uint32_t minor)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void open_gpu(struct bench_gpu *g, uint32_t *minor)
{
	do
		g->render_fd = open_minor(*minor);
	while (g->render_fd < 0 && ++*minor <= LAST_MINOR);
	if (g->render_fd < 0)
		die("there are not that many GPUs", -ENODEV);
	g->minor = (*minor)++;
	g->saved = calloc(config.nr_bos, sizeof(*g->saved));
	g->restored = calloc(config.nr_bos, sizeof(*g->restored));
	g->handles = calloc(2 * config.nr_bos, sizeof(*g->handles));
	if (!g->saved || !g->restored || !g->handles)
		die("preparing BOs", -ENOMEM);
	for (unsigned int i = 0; i < config.nr_bos; i++) {
		make_bo(g, &g->saved[i], &g->handles[i]);
		make_bo(g, &g->restored[i], &g->handles[config.nr_bos + i]);
		g->saved[i].index = g->restored[i].index = i;
		fill(g, i);
	}
	snprintf(g->path, sizeof(g->path), "%s/pages-%u.img", config.dir, g->minor);
	g->gpu = (struct content_gpu){
		.gpu_id = g->minor,
		.render_fd = open_minor(g->minor),
		.pages_name = g->path,
		.nr_bos = config.nr_bos,
	};
	if (g->gpu.render_fd < 0)
		die("opening a render node", errno_or_eio());
}

static double run(struct bench_gpu *g, bool dump)
{
	const struct content_options options = { .max_buffer_bytes = config.max_bytes };
	struct content_gpu gpus[MAX_GPUS];
	double start = bench_now();
	int err;

	for (unsigned int i = 0; i < config.nr_gpus; i++) {
		gpus[i] = g[i].gpu;
		gpus[i].bos = dump ? g[i].saved : g[i].restored;
		gpus[i].pages_fd = open(g[i].path, dump ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
		if (gpus[i].pages_fd < 0)
			die(g[i].path, errno_or_eio());
	}
	err = dump ? content_dump(gpus, config.nr_gpus, &options) : content_restore(gpus, config.nr_gpus, &options);
	if (err)
		die("the engine", err);
	for (unsigned int i = 0; i < config.nr_gpus; i++)
		if (close(gpus[i].pages_fd))
			die(g[i].path, errno_or_eio());
	return bench_now() - start;
}

/* ---- results ---- */

static double disk_megabytes(const struct bench_gpu *g)
{
	double bytes = 0;
	struct stat st;

	for (unsigned int i = 0; i < config.nr_gpus; i++)
		if (stat(g[i].path, &st) == 0)
			bytes += (double)st.st_blocks * 512;
	return bytes / 1e6;
}

/* What one of them alone would need: GPUs copy at the same time, the disk is shared. */
static double slower_part(double on_disk)
{
	double bytes = (double)config.nr_bos * (double)config.bo_bytes;
	double copy = config.copy_rate ? bytes / 1e6 / config.copy_rate : 0;
	double disk = config.disk_rate ? on_disk / config.disk_rate : 0;

	return copy > disk ? copy : disk;
}

/* One JSON object on a line; ratio 0 = not known. */
static void report(const struct bench_gpu *g, const char *direction, double seconds, long grown_kib)
{
	double on_disk = disk_megabytes(g), ideal = slower_part(on_disk);

	printf("{\"name\": \"%s\", \"direction\": \"%s\", \"gpus\": %u, \"bos\": %u, \"bo_bytes\": %llu, \"disk_mb\": "
	       "%.1f, "
	       "\"seconds\": %.3f, \"ratio\": %.3f, \"grown_kib\": %ld}\n",
	       config.name, direction, config.nr_gpus, config.nr_bos, (unsigned long long)config.bo_bytes, on_disk,
	       seconds, ideal > 0 ? seconds / ideal : 0.0, grown_kib);
	fflush(stdout);
}

/* Each BO has a file. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void usage(void)
{
	fprintf(stderr, "usage: content_device [OPTION...]\n"
			"  --gpus N         the first N render nodes (default: 1)\n"
			"  --bos N          BOs on each (default: 1)\n"
			"  --bo-kib N       size of a BO in KiB (default: 65536)\n"
			"  --zeros N        N tenths of the contents are zero (default: 0)\n"
			"  --max-kib N      cap of the staging memory (default: the engine's)\n"
			"  --copy-rate N    MB/s that a GPU's DMA engines are limited to together, and\n"
			"  --disk-rate N    MB/s that the disk is: ratio is time / time of the slower part\n"
			"  --dir DIRECTORY  where the files are made (default: /tmp)\n"
			"  --name TEXT      for the results, which are JSON objects on a line each\n"
			"  --quiet          without the engine's log\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "gpus", required_argument, NULL, 'g' },
		{ "bos", required_argument, NULL, 'b' },
		{ "bo-kib", required_argument, NULL, 's' },
		{ "zeros", required_argument, NULL, 'z' },
		{ "max-kib", required_argument, NULL, 'm' },
		{ "copy-rate", required_argument, NULL, 'c' },
		{ "disk-rate", required_argument, NULL, 'd' },
		{ "dir", required_argument, NULL, 'D' },
		{ "name", required_argument, NULL, 'n' },
		{ "quiet", no_argument, NULL, 'q' },
		{ 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (opt) {
		case 'g':
			config.nr_gpus = (unsigned int)number;
			break;
		case 'b':
			config.nr_bos = (unsigned int)number;
			break;
		case 's':
			config.bo_bytes = number << 10;
			break;
		case 'z':
			config.zeros = (unsigned int)number;
			break;
		case 'm':
			config.max_bytes = number << 10;
			break;
		case 'c':
			config.copy_rate = (double)number;
			break;
		case 'd':
			config.disk_rate = (double)number;
			break;
		case 'D':
			config.dir = optarg;
			break;
		case 'n':
			config.name = optarg;
			break;
		case 'q':
			config.quiet = true;
			break;
		default:
			usage();
		}
	}
	if (optind < argc || !config.nr_gpus || config.nr_gpus > MAX_GPUS || !config.nr_bos || !config.bo_bytes ||
	    config.zeros > PERCENT_RUNS)
		usage();
}

int main(int argc, char **argv)
{
	static struct bench_gpu gpus[MAX_GPUS];
	uint32_t minor = FIRST_MINOR;
	double seconds;
	long before;

	parse(argc, argv);
	allow_many_files();
	for (unsigned int i = 0; i < config.nr_gpus; i++)
		open_gpu(&gpus[i], &minor);
	before = peak_kib();
	seconds = run(gpus, true);
	report(gpus, "dump", seconds, peak_kib() - before);
	for (unsigned int i = 0; i < config.nr_gpus; i++)
		for (unsigned int bo = 0; bo < config.nr_bos; bo++) {
			gpus[i].restored[bo].crc32c = gpus[i].saved[bo].crc32c;
			gpus[i].restored[bo].has_crc32c = gpus[i].saved[bo].has_crc32c;
		}
	seconds = run(gpus, false);
	report(gpus, "restore", seconds, peak_kib() - before);
	for (unsigned int i = 0; i < config.nr_gpus; i++) {
		for (unsigned int bo = 0; bo < config.nr_bos; bo++)
			check(&gpus[i], bo);
		unlink(gpus[i].path);
	}
	return 0;
}
