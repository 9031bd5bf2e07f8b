// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a stopped process, read and written by /proc/PID/mem: unlike process_vm_readv() that reaches mappings of device
 * files too, as rings of queues are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "stopped/memory.h"
#include "amdgpu_plugin_util.h"

static int finish(pid_t pid, uint64_t address, size_t size, ssize_t done, const char *verb)
{
	if (done == (ssize_t)size)
		return 0;
	return fail(done < 0 ? -errno : -EFAULT, "pid %d: cannot %s %zu bytes of its memory at %#" PRIx64 ": %m", pid, verb, size,
		    address);
}

int memory_read(pid_t pid, uint64_t address, void *data, size_t size)
{
	_cleanup_close_ int fd = proc_open(pid, "mem", O_RDONLY);

	if (fd < 0)
		return fail(fd, "cannot open /proc/%d/mem: %m", pid);
	return finish(pid, address, size, pread(fd, data, size, (off_t)address), "read");
}

int memory_write(pid_t pid, uint64_t address, const void *data, size_t size)
{
	_cleanup_close_ int fd = proc_open(pid, "mem", O_WRONLY);

	if (fd < 0)
		return fail(fd, "cannot open /proc/%d/mem: %m", pid);
	return finish(pid, address, size, pwrite(fd, data, size, (off_t)address), "write");
}
