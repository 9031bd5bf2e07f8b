// SPDX-License-Identifier: GPL-2.0-only
/* How much memory the machine and the caller's cgroups leave. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "unit.h"
#include "log_stub.h"
#include "remove_all.h"
#include "stopped/stopped.h"

#define MIB	(1ull << 20)

static char directory[] = "/tmp/room.XXXXXX";
static const char *cgroup; /* of the caller; NULL: the root */

bool cgroup_of(pid_t pid, char path[PATH_MAX])
{
	assert_int_equal(pid, getpid());
	snprintf(path, PATH_MAX, CGROUPS "%s", cgroup ? cgroup : "");
	return cgroup;
}

bool cgroup_above(char *path)
{
	*strrchr(path, '/') = '\0';
	return strcmp(path, CGROUPS);
}

static const char *redirect(const char *path, char to[PATH_MAX])
{
	bool is_ours = !strncmp(path, CGROUPS, strlen(CGROUPS)) || !strcmp(path, "/proc/meminfo");

	snprintf(to, PATH_MAX, "%s%s", is_ours ? directory : "", path);
	return to;
}

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
	char to[PATH_MAX];

	return __real_open(redirect(path, to), flags, mode);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	char to[PATH_MAX];

	return __real_fopen(redirect(path, to), mode);
}

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", directory, name);
	for (char *slash = strchr(path + strlen(directory) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = __real_fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int begin(void **state)
{
	return !mkdtemp(directory);
}

static int end(void **state)
{
	remove_all(directory);
	return 0;
}

static void expect_room(uint64_t bytes, const char *by)
{
	struct memory_room room;

	memory_ask_room(&room);
	assert_int_equal(room.bytes, bytes);
	assert_string_equal(room.by, by);
}

TEST(the_machine_or_the_fullest_cgroup_says_how_much_room_there_is)
{
	cgroup = NULL;
	expect_room(UINT64_MAX, "");
	put("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree:  1 kB\nMemAvailable:    524288 kB\n");
	expect_room(512 * MIB, "the machine");
	/* A cgroup without a limit, below one that has one. */
	put(CGROUPS "/pod/agent/memory.max", "max\n");
	put(CGROUPS "/pod/agent/memory.current", "1048576\n");
	put(CGROUPS "/pod/memory.max", "209715200\n");
	put(CGROUPS "/pod/memory.current", "104857600\n");
	cgroup = "/pod/agent";
	expect_room(100 * MIB, CGROUPS "/pod");
	/* Pages of files on disks make room. */
	put(CGROUPS "/pod/memory.stat", "anon 1\nfile 41943040\ninactive_file 20971520\nactive_file 10485760\nshmem 10485760\n");
	expect_room(130 * MIB, CGROUPS "/pod");
	put(CGROUPS "/pod/agent/memory.max", "2097152\n");
	expect_room(1 * MIB, CGROUPS "/pod/agent");
	put(CGROUPS "/pod/agent/memory.current", "3145728\n");
	expect_room(0, CGROUPS "/pod/agent");
	/* In a cgroup namespace the container's own is the root. */
	cgroup = NULL;
	put(CGROUPS "/memory.max", "4194304\n");
	put(CGROUPS "/memory.current", "1048576\n");
	expect_room(3 * MIB, CGROUPS);
}

UNIT_MAIN(begin, end)
