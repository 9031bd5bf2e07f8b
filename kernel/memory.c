// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engines put criu into the cgroup of the container that it restores, so what is used for copies counts there.
 *
 * Cgroups are looked at where they are mounted: mounting cgroup v2 once more would reset the options of the whole
 * machine's, such as nsdelegate.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>

#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

/* The processes of the container need the rest. */
#define COPY_SHARE 8

#define CGROUPS	   "/sys/fs/cgroup"
#define CGROUPS_V1 CGROUPS "/memory"

/* "max" is no number, and so no limit. */
static uint64_t read_limit(int root, const char *dir, const char *file)
{
	char path[PATH_MAX];
	uint64_t limit;

	if (snprintf(path, sizeof(path), "./%s/%s", dir, file) >= (int)sizeof(path))
		return UINT64_MAX;
	return read_number_at(root, path, &limit) ? UINT64_MAX : limit;
}

/* The least of a cgroup and all above it. @path is cut on the way. */
static uint64_t least_limit(int root, char *path, const char *file)
{
	uint64_t least = UINT64_MAX;

	for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
		uint64_t limit;

		*slash = '\0';
		limit = read_limit(root, path, file);
		least = limit < least ? limit : least;
	}
	return least;
}

/* @line: "NUMBER:CONTROLLERS:PATH"; that of v2 has no controllers. */
static uint64_t limit_of_line(char *line)
{
	char *controllers, *path;
	_cleanup_close_ int root = -1;
	bool v1;

	strsep(&line, ":");
	controllers = strsep(&line, ":");
	path = strsep(&line, "\n");
	if (!path)
		return UINT64_MAX;
	v1 = *controllers;
	if (v1 && strcmp(controllers, "memory"))
		return UINT64_MAX;
	root = open(v1 ? CGROUPS_V1 : CGROUPS, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? UINT64_MAX : least_limit(root, path, v1 ? "memory.limit_in_bytes" : "memory.max");
}

uint64_t memory_allowed(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/cgroup", "re");
	_cleanup_free_ char *line = NULL;
	uint64_t least = UINT64_MAX;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		uint64_t limit = limit_of_line(line);

		least = limit < least ? limit : least;
	}
	return least;
}

uint64_t memory_for_copies(uint64_t wanted)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), allowed = wanted ? UINT64_MAX : memory_allowed();

	if (allowed == UINT64_MAX)
		return wanted;
	return allowed / COPY_SHARE > page ? allowed / COPY_SHARE / page * page : page;
}
