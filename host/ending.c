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

/* criu kills the tasks, and does not wait for their end. */
#define PATIENCE_MS 5000

static void fail_if_alive(void *arg)
{
	pid_t pid = (pid_t)(intptr_t)arg;
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool has_ended = end.fd < 0 ? errno == ESRCH : pid != getpid() && poll(&end, 1, PATIENCE_MS) == 1;

	if (!has_ended)
		_exit(EXIT_FAILURE);
}

static bool stays_loaded(void)
{
	Dl_info info;

	return dladdr((void *)fail_if_alive, &info) && dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Of libc; a function that belongs to no library is called at the end of the program. */
int __cxa_atexit(void (*function)(void *), void *arg, void *dso);

void criu_fail_at_exit(pid_t pid)
{
	void *leave = (void *)_exit;

	if (stays_loaded())
		__cxa_atexit(fail_if_alive, (void *)(intptr_t)pid, NULL);
	else
		__cxa_atexit((void (*)(void *))leave, (void *)(intptr_t)EXIT_FAILURE, NULL);
}
