// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a stopped process, read and written by /proc/PID/mem: unlike process_vm_readv() that reaches mappings of
 * device files too, as rings of queues are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "stopped/memory.h"
#include "amdgpu_plugin_util.h"

/* The kernel reads and writes nothing of a process that has ended, and says EIO of an address that is not mapped. */
static int finish(pid_t pid, uint64_t address, size_t size, ssize_t done, const char *verb)
{
	int err = done == (ssize_t)size ? 0 : done < 0 ? -errno : done ? -EFAULT : -ESRCH;

	if (!err)
		return 0;
	if (err == -ESRCH)
		return fail(err, "pid %d: has ended", pid);
	return fail(err == -EIO ? -EFAULT : err, "pid %d: cannot %s %zu bytes of its memory at %#" PRIx64 ": %m", pid, verb, size,
		    address);
}

static int open_memory(pid_t pid, int flags)
{
	int fd = proc_open(pid, "mem", flags);

	if (fd == -ENOENT || fd == -ESRCH)
		return fail(-ESRCH, "pid %d: has ended", pid);
	return fd < 0 ? fail(fd, "cannot open /proc/%d/mem: %m", pid) : fd;
}

int memory_read(pid_t pid, uint64_t address, void *data, size_t size)
{
	_cleanup_close_ int fd = open_memory(pid, O_RDONLY);

	return fd < 0 ? fd : finish(pid, address, size, pread(fd, data, size, (off_t)address), "read");
}

int memory_write(pid_t pid, uint64_t address, const void *data, size_t size)
{
	_cleanup_close_ int fd = open_memory(pid, O_WRONLY);

	return fd < 0 ? fd : finish(pid, address, size, pwrite(fd, data, size, (off_t)address), "write");
}
