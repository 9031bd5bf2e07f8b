// SPDX-License-Identifier: GPL-2.0-only
/* Which limit keeps a process from a call that it was made to make: its own, or the machine's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "stopped/inject.h"
#include "amdgpu_plugin_util.h"

/* What the process uses of it is a line of /proc/PID/status; NULL: the errno alone tells. */
static const struct {
	int err, resource;
	const char *used, *name, *option; /* option: of prlimit(1) */
} limits[] = {
	{ -ENOMEM, RLIMIT_AS, "VmSize", "RLIMIT_AS", "as" },
	{ -ENOMEM, RLIMIT_DATA, "VmData", "RLIMIT_DATA", "data" },
	{ -EAGAIN, RLIMIT_MEMLOCK, NULL, "RLIMIT_MEMLOCK", "memlock" }, /* of one that locks all its memory */
	{ -EMFILE, RLIMIT_NOFILE, NULL, "RLIMIT_NOFILE", "nofile" },
};

static uint64_t read_setting(const char *name)
{
	_cleanup_close_ int dir = open("/proc/sys/vm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t ret = 0;

	return dir < 0 || read_number_at(dir, name, &ret) ? 0 : ret;
}

int inject_fail(const struct inject *inject, int err, const char *what)
{
	_cleanup_fclose_ FILE *maps = NULL;
	pid_t pid = inject->tid;
	uint64_t most, nr = 0;
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t used = limits[i].used ? proc_status(pid, limits[i].used, 10) * 1024 : UINT64_MAX / 2;
		struct rlimit limit;

		if (limits[i].err != err || prlimit(pid, limits[i].resource, NULL, &limit) ||
		    used + INJECT_MEMORY <= limit.rlim_cur)
			continue;
		return fail(err, "pid %d: cannot %s: %m: it is at its limit %s, %" PRIu64
			    ": raise that (\"prlimit --pid %d --%s=NUMBER\") and try again",
			    pid, what, limits[i].name, (uint64_t)limit.rlim_cur, pid, limits[i].option);
	}
	if (err != -ENOMEM)
		return fail(err, "pid %d: cannot %s: %m", pid, what);
	most = read_setting("max_map_count");
	maps = proc_file(pid, "maps");
	while (maps && (c = getc(maps)) != EOF)
		nr += c == '\n';
	/* The memory of calls is two. */
	if (most && nr + 2 >= most)
		return fail(err, "pid %d: cannot %s: %m: it has %" PRIu64 " mappings, and vm.max_map_count is %" PRIu64
			    ": raise that (\"sysctl vm.max_map_count=NUMBER\") and try again", pid, what, nr, most);
	return fail(err, "pid %d: cannot %s: %m%s", pid, what, read_setting("overcommit_memory") != 2 ? "" :
		    ": vm.overcommit_memory is 2, and the machine has promised all its memory: raise that (\"sysctl "
		    "vm.overcommit_ratio=NUMBER\") and try again");
}
