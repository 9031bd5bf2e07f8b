// SPDX-License-Identifier: GPL-2.0-only
/* How much memory the cgroups of a process leave it, from a directory that stands for their file systems. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>

#include "unit.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"
#include "remove_all.h"

static char top[32];
static const char *cgroups; /* /proc/self/cgroup; NULL: there is none */
static bool mounted;	    /* at /sys/fs/cgroup */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strcmp(path, "/proc/self/cgroup"))
		return __real_fopen(path, mode);
	errno = ENOENT;
	return cgroups ? fmemopen((void *)cgroups, strlen(cgroups), "r") : NULL;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	static const char cgroups_dir[] = "/sys/fs/cgroup";
	char place[96];

	if (strncmp(path, cgroups_dir, strlen(cgroups_dir)))
		return __real_open(path, flags, 0600);
	snprintf(place, sizeof(place), "%s/%s", top, mounted ? path : "nothing");
	return __real_open(place, flags);
}

static void put(const char *path, const char *text)
{
	char command[300];
	FILE *f;

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s/%s')\"", top, path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/%s", top, path);
	f = fopen(command, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/test_memory.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	mounted = true;
	put("sys/fs/cgroup/memory/tasks", "");
	put("sys/fs/cgroup/cgroup.procs", "");
	return 0;
}

static int teardown(void **state)
{
	return remove_all(top);
}

static void assert_allowed(uint64_t bytes)
{
	assert_true(memory_allowed() == bytes);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(least_of_a_cgroup_and_those_above_it)
{
	cgroups = "0::/engine/container/below\n";
	put("sys/fs/cgroup/engine/container/below/memory.max", "max\n");
	assert_allowed(UINT64_MAX);
	put("sys/fs/cgroup/engine/memory.max", "1073741824\n");
	assert_allowed(1073741824);
	put("sys/fs/cgroup/engine/container/memory.max", "67108864\n");
	assert_allowed(67108864);
	put("sys/fs/cgroup/engine/container/below/memory.max", "134217728\n");
	assert_allowed(67108864);
	put("sys/fs/cgroup/engine/container/below/memory.max", "4096\n");
	assert_allowed(4096);
}

FIXTURE_TEST(limit_of_the_root_counts)
{
	put("sys/fs/cgroup/memory.max", "5000000\n");
	cgroups = "0::/\n";
	assert_allowed(5000000);
	cgroups = "0::/a/b/c\n";
	assert_allowed(5000000);
}

FIXTURE_TEST(other_cgroups_do_not_count)
{
	cgroups = "0::/engine/container\n";
	put("sys/fs/cgroup/engine/container/below/memory.max", "1\n");
	put("sys/fs/cgroup/engine/other/memory.max", "2\n");
	put("sys/fs/cgroup/engine/containers/memory.max", "3\n");
	put("sys/fs/cgroup/memory/engine/container/memory.limit_in_bytes", "4\n");
	assert_allowed(UINT64_MAX);
}

/* Of v1, each controller may have the process elsewhere. */
FIXTURE_TEST(version_1_has_the_memory_controller_where_its_line_says)
{
	cgroups = "9:cpu,cpuacct:/fast\n8:memory:/engine/container\n0::/engine\n";
	put("sys/fs/cgroup/memory/fast/memory.limit_in_bytes", "1\n");
	put("sys/fs/cgroup/memory/engine/container/memory.limit_in_bytes", "9223372036854771712\n");
	assert_allowed(9223372036854771712u);
	put("sys/fs/cgroup/memory/engine/memory.limit_in_bytes", "268435456\n");
	assert_allowed(268435456);
	put("sys/fs/cgroup/engine/memory.max", "134217728\n");
	assert_allowed(134217728);
}

FIXTURE_TEST(what_is_not_known_is_no_limit)
{
	static const char *const wrong[] = {
		"", "\n", "0\n", "0:\n", "0::\n", "what\n", "8:memory\n", "0::relative\n"
	};

	cgroups = NULL;
	assert_allowed(UINT64_MAX);
	for (size_t i = 1; i < ARRAY_SIZE(wrong); i++) {
		cgroups = wrong[i];
		assert_allowed(UINT64_MAX);
	}
	cgroups = "0::/engine\n";
	put("sys/fs/cgroup/engine/memory.max", "\n");
	assert_allowed(UINT64_MAX);
	put("sys/fs/cgroup/engine/memory.max", "12345678901234567890123456789012345678901234567890\n");
	assert_allowed(UINT64_MAX);
	put("sys/fs/cgroup/engine/memory.max", "1000\n");
	mounted = false;
	assert_allowed(UINT64_MAX);
}

FIXTURE_TEST(a_path_that_is_too_long_leaves_those_above_it)
{
	char line[PATH_MAX + 64] = "0::/engine/";

	memset(line + strlen(line), 'x', PATH_MAX);
	line[sizeof(line) - 1] = '\0';
	strcpy(line + PATH_MAX + 20, "\n");
	cgroups = line;
	put("sys/fs/cgroup/engine/memory.max", "8192\n");
	assert_allowed(8192);
}

FIXTURE_TEST(copies_use_a_part_of_it)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	cgroups = "0::/engine\n";
	assert_true(memory_for_copies(0) == 0);
	assert_true(memory_for_copies(4096) == 4096);
	put("sys/fs/cgroup/engine/memory.max", "67108864\n");
	assert_true(memory_for_copies(0) == 8388608);
	assert_true(memory_for_copies(4096) == 4096);
	put("sys/fs/cgroup/engine/memory.max", "67108000\n");
	assert_true(memory_for_copies(0) == 8388608 - page);
	put("sys/fs/cgroup/engine/memory.max", "0\n");
	assert_true(memory_for_copies(0) == page);
}

UNIT_MAIN(NULL, NULL)
