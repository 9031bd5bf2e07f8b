// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory files in memory may still take. They count to the cgroup of the process that writes them first, and
 * to all above it: where there is no room, the kernel kills a process.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "stopped/hold.h"
#include "stopped/memory.h"
#include "amdgpu_plugin_util.h"

/* UINT64_MAX: it has no limit, which reads as "max". */
static uint64_t cgroup_room(const char *path)
{
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t max, now, value, droppable = 0;
	char name[64];
	int fd;

	if (dir < 0 || read_number_at(dir, "memory.max", &max) || read_number_at(dir, "memory.current", &now))
		return UINT64_MAX;
	/* What the kernel drops first when a cgroup is full: pages of files on disks. */
	fd = openat(dir, "memory.stat", O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "re");
	while (f && fscanf(f, "%63s %" SCNu64, name, &value) == 2)
		if (!strcmp(name, "inactive_file") || !strcmp(name, "active_file"))
			droppable += value;
	now -= droppable < now ? droppable : now;
	return now < max ? max - now : 0;
}

static void less(struct memory_room *room, uint64_t bytes, const char *by)
{
	if (bytes >= room->bytes)
		return;
	room->bytes = bytes;
	snprintf(room->by, sizeof(room->by), "%s", by);
}

void memory_ask_room(struct memory_room *ret)
{
	char path[PATH_MAX], text[64];
	const char *end;
	uint64_t kib;

	*ret = (struct memory_room){ .bytes = UINT64_MAX };
	if (!proc_value("/proc/meminfo", "MemAvailable", text, sizeof(text)) &&
	    !parse_digits(text + strspn(text, " \t"), 10, UINT64_MAX >> 10, &end, &kib))
		less(ret, kib << 10, "the machine");
	for (bool more = cgroup_of(getpid(), path); more; more = cgroup_above(path))
		less(ret, cgroup_room(path), path);
	less(ret, cgroup_room(CGROUPS), CGROUPS); /* in a cgroup namespace that is the container's */
}
