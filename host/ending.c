// SPDX-License-Identifier: GPL-2.0-only
/*
 * A failure that comes when criu no longer asks any plugin. Whether it matters shows when criu ends: a dump that ends
 * the tasks has ended them by then, and its images are whole. criu unloads its plugins before that, so this one is kept
 * loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sys/syscall.h>

#include "amdgpu_plugin_util.h"
#include "host/criu.h"

#define PF_EXITING 0x4u /* of Linux' sched.h */

/* criu kills the tasks, and does not wait for their end. */
#define NR_NAPS	 250
#define NAP_USEC 20000

bool criu_task_has_ended(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = { .fd = fd, .events = POLLIN };
	const char *rest;
	unsigned int flags;
	char line[1024];

	if (fd < 0 || poll(&end, 1, 0) == 1)
		return fd >= 0 || errno == ESRCH;
	rest = proc_stat(pid, line, sizeof(line));
	return rest && sscanf(rest, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_EXITING;
}

static void fail_if_alive(void *arg)
{
	for (int i = 0; i < NR_NAPS; i++) {
		if (criu_task_has_ended((pid_t)(intptr_t)arg))
			return;
		usleep(NAP_USEC);
	}
	_exit(EXIT_FAILURE);
}

/* Of libc; a function that belongs to no library is called at the end of the program. */
int __cxa_atexit(void (*function)(void *), void *arg, void *dso);

void criu_fail_at_exit(pid_t pid)
{
	void *leave = (void *)_exit;
	Dl_info info;

	/* When the plugin can be kept loaded. */
	if (dladdr((void *)fail_if_alive, &info) && dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))
		__cxa_atexit(fail_if_alive, (void *)(intptr_t)pid, NULL);
	else
		__cxa_atexit((void (*)(void *))leave, (void *)(intptr_t)EXIT_FAILURE, NULL);
}
