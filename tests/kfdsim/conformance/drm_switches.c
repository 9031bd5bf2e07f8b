// SPDX-License-Identifier: GPL-2.0-only
/*
 * The switches of a description's [kernel] section that concern render nodes, and
 * the bandwidth of engines. Loads machines of its own and, at the end, the one again
 * that was there. The program "drm", which looks at what it finds, runs on each.
 */
#include <libgen.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "drm_test.h"

#define DESCRIPTION "/tmp/drm_switches.txt"
#define MiB	    (1ull << 20)

static char original[512], programs[512];

static void remember_original(void)
{
	FILE *f = fopen("/sys/module/kfdsim/parameters/gpus", "r");

	if (!f || !fgets(original, sizeof(original), f))
		errx(2, "the module kfdsim is not loaded");
	original[strcspn(original, "\n")] = 0;
	fclose(f);
}

static void load_file(const char *path)
{
	char command[1024];

	snprintf(command, sizeof(command), "kfdsim-load '%s'", path);
	if (system(command))
		errx(2, "%s failed", command);
}

static void load(const char *kernel, const char *gpu)
{
	FILE *f = fopen(DESCRIPTION, "w");

	if (!f)
		err(2, DESCRIPTION);
	fprintf(f,
		"[kernel]\n%s\n[cpu]\ncpu_cores_count = 2\nmemory = 64G\n\n[gpu]\ncount = 2\n"
		"gfx_target_version = 90008\ndevice_id = 0x738c\nname = arcturus\nvram_size = 16G\n"
		"simd_count = 480\nnum_sdma_engines = 2\n%s\n",
		kernel, gpu);
	fclose(f);
	load_file(DESCRIPTION);
}

/* The checks that "drm" makes hold on this machine, too. */
static void run_drm(const char *what, const char *release)
{
	char command[1024], line[512], last[512] = "";
	unsigned int passed, failed = 1;
	FILE *f;

	snprintf(command, sizeof(command), "%s/drm %s", programs, release);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		strcpy(last, line);
		if (!strncmp(line, "not ok", 6))
			printf("# %s", line);
	}
	if (!f || pclose(f) < 0 || sscanf(last, "%u passed, %u failed", &passed, &failed) != 2)
		failed = 1;
	check_u64(failed, 0, "%s: all checks of the program drm", what);
}

static void test_release_612(void)
{
	int fd;
	struct list_handles list = { 0 };
	uint32_t change[2] = { 1, 1 }, handle;

	load("release = 6.12", "");
	fd = render_open(0);
	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), EINVAL, "6.12 has no GEM_LIST_HANDLES");
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, change), EINVAL, "and no GEM_CHANGE_HANDLE");
	check_errno(try_create(fd, 4096, 0, DOMAIN_VRAM, 1 << 13, &handle), EINVAL,
		    "and does not let user space ask for coherent memory");
	close(fd);
	run_drm("6.12", "6.12");
}

static void test_release_618(void)
{
	struct list_entry entry;
	struct list_handles list = { .entries = (uintptr_t)&entry, .num_entries = 1 };
	uint32_t handle;
	int fd;

	load("release = 6.18", "");
	fd = render_open(0);
	check_errno(try_create(fd, 4096, 0, DOMAIN_VRAM, 1 << 13, &handle), 0,
		    "6.18 lets user space ask for coherent memory");
	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), 0, "it has GEM_LIST_HANDLES");
	check_u64(entry.alloc_flags,
		  1 << 13 | AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE,
		  "which reports that");
	close(fd);
}

static bool kernel_is_older_than(int major, int minor)
{
	struct utsname name;
	int has_major, has_minor;

	if (uname(&name) || sscanf(name.release, "%d.%d", &has_major, &has_minor) != 2)
		return false;
	return has_major < major || (has_major == major && has_minor < minor);
}

static void test_change_handle(void)
{
	if (kernel_is_older_than(6, 8)) {
		check_skip("GEM_CHANGE_HANDLE of shared buffers: this machine's kernel is older than 6.8");
		return;
	}
	load("gem_change_handle = yes", "");
	run_drm("GEM_CHANGE_HANDLE enabled", "");
}

static void test_overrun(void)
{
	struct engine e;
	uint32_t bo;
	uint64_t va;
	uint8_t *p;

	load("tolerate_overrun = yes", "");
	engine_open(&e, 0);
	bo = bo_create(e.fd, 8192, DOMAIN_VRAM);
	va = engine_map(&e, bo, 8192);
	p = bo_map(e.fd, bo, 8192);
	memset(p, 0x77, 4096);
	emit_copy_count(&e.c, va + 4096, va, 4096);
	check_errno(engine_run(&e), 0, "tolerate_overrun: a copy that counts one byte too many");
	check_true(p[4096] == 0x77 && p[8191] == 0x77, "copies the others");
	emit_copy_count(&e.c, va + 4096, va, 4097);
	check_errno(engine_run(&e), ETIME, "two bytes too many fault");
	munmap(p, 8192);
	engine_close(&e);
}

static double seconds_of(struct engine *e, uint64_t size, unsigned int ring, uint64_t *sequence)
{
	uint64_t start = in_ms(0);

	if (engine_start(e, ring, sequence) || job_wait(e->fd, e->ctx, ring, *sequence, FOREVER))
		err(2, "copying %" PRIu64 " bytes", size);
	return (in_ms(0) - start) / 1e9;
}

static void test_bandwidth(void)
{
	const uint64_t size = 32 * MiB;
	uint32_t a, b;
	uint64_t va, vb, sequence;
	struct engine e;
	double seconds, whole;

	load("release = 7.2", "sdma_mbps = 100");
	engine_open(&e, 0);
	a = bo_create(e.fd, size, DOMAIN_VRAM);
	b = bo_create(e.fd, size, DOMAIN_VRAM);
	va = engine_map(&e, a, size);
	vb = engine_map(&e, b, size);
	emit_copy(&e.c, vb, va, size);
	seconds = seconds_of(&e, size, 0, &sequence);
	printf("# 32 MiB at 100 MB/s: %.3f s\n", seconds);
	check_true(seconds > 0.33, "an engine of 100 MB/s takes at least a third of a second for 32 MiB");
	whole = seconds;
	e.c.n = 0;
	emit_copy(&e.c, vb, va, 4096);
	seconds = seconds_of(&e, 4096, 0, &sequence);
	printf("# a page: %.3f s\n", seconds);
	check_true(seconds < whole, "and less for a page");
	engine_close(&e);
}

int main(int argc, char **argv)
{
	(void)argc;
	snprintf(programs, sizeof(programs), "%s", dirname(strdup(argv[0])));
	remember_original();
	test_release_612();
	test_release_618();
	test_change_handle();
	test_overrun();
	test_bandwidth();
	load_file(original);
	return conformance_end();
}
