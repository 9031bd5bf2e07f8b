// SPDX-License-Identifier: GPL-2.0-only
/*
 * failcalls.so: calls of the KFD and of render nodes that fail on request, whatever the driver. For LD_PRELOAD.
 *
 * $FAILCALLS names a file with lines "POINT NTH ERRNO [TIMES]": the NTH call of this kind that the program or one of
 * its children makes fails with this error, without reaching the kernel, and so do the TIMES - 1 calls after it (0: all;
 * without: none). With KILL for ERRNO it is made, and the program is killed when it returns, with KILLALL its
 * children as well; with TERM the program and its parent get SIGTERM then, with STOP a ptrace() stops the program. How often each point was called, and has failed, stands in the file's namesake FILE.counts, two numbers
 * of 64 bits for each line.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define MAX_FAULTS 64
#define OPEN_KFD   UINT32_MAX
#define PTRACE_ANY (UINT32_MAX - 1)

/* Type and number of an ioctl; of those for criu and for contexts, the operation. */
static const struct point {
	const char *name;
	char type;
	uint32_t number, op;
} points[] = {
#define ANY UINT32_MAX
	{ "kfd:open", 0, OPEN_KFD, ANY },
	{ "sys:ptrace", 0, PTRACE_ANY, ANY },
	{ "kfd:GET_PROCESS_APERTURES_NEW", 'K', 0x14, ANY },
	{ "kfd:ACQUIRE_VM", 'K', 0x15, ANY },
	{ "kfd:FREE_MEMORY_OF_GPU", 'K', 0x17, ANY },
	{ "kfd:MAP_MEMORY_TO_GPU", 'K', 0x18, ANY },
	{ "kfd:GET_DMABUF_INFO", 'K', 0x1c, ANY },
	{ "kfd:IMPORT_DMABUF", 'K', 0x1d, ANY },
	{ "kfd:CRIU_OP", 'K', 0x22, ANY },
	{ "kfd:CRIU_PROCESS_INFO", 'K', 0x22, KFD_CRIU_OP_PROCESS_INFO },
	{ "kfd:CRIU_CHECKPOINT", 'K', 0x22, KFD_CRIU_OP_CHECKPOINT },
	{ "kfd:CRIU_UNPAUSE", 'K', 0x22, KFD_CRIU_OP_UNPAUSE },
	{ "kfd:CRIU_RESTORE", 'K', 0x22, KFD_CRIU_OP_RESTORE },
	{ "kfd:CRIU_RESUME", 'K', 0x22, KFD_CRIU_OP_RESUME },
	{ "drm:VERSION", 'd', 0x00, ANY },
	{ "drm:GEM_CLOSE", 'd', 0x09, ANY },
	{ "drm:PRIME_HANDLE_TO_FD", 'd', 0x2d, ANY },
	{ "drm:PRIME_FD_TO_HANDLE", 'd', 0x2e, ANY },
	{ "drm:GEM_CREATE", 'd', 0x40, ANY },
	{ "drm:GEM_MMAP", 'd', 0x41, ANY },
	{ "drm:CTX", 'd', 0x42, ANY },
	{ "drm:CTX_ALLOC", 'd', 0x42, 1 },
	{ "drm:CTX_FREE", 'd', 0x42, 2 },
	{ "drm:CS", 'd', 0x44, ANY },
	{ "drm:INFO", 'd', 0x45, ANY },
	{ "drm:GEM_METADATA", 'd', 0x46, ANY },
	{ "drm:GEM_VA", 'd', 0x48, ANY },
	{ "drm:WAIT_CS", 'd', 0x49, ANY },
	{ "drm:GEM_OP", 'd', 0x50, ANY },
	{ "drm:GEM_USERPTR", 'd', 0x51, ANY },
	{ "drm:GEM_LIST_HANDLES", 'd', 0x59, ANY },
};

struct fault {
	const struct point *point;
	uint64_t nth, times;
	int err;
};

struct count {
	_Atomic uint64_t calls, failed;
};

static struct fault faults[MAX_FAULTS];
static size_t nr_faults;
static struct count *counts; /* of this program and its children */

static void give_up(const char *what)
{
	fprintf(stderr, "failcalls: %s\n", what);
	_exit(125);
}

static const struct point *find_point(const char *name)
{
	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++)
		if (!strcmp(points[i].name, name))
			return &points[i];
	return NULL;
}

#define KILL	-1
#define KILLALL -2
#define TERM	-3
#define STOP	-4

static int find_errno(const char *name)
{
	if (!strcmp(name, "KILL"))
		return KILL;
	if (!strcmp(name, "KILLALL"))
		return KILLALL;
	if (!strcmp(name, "TERM"))
		return TERM;
	if (!strcmp(name, "STOP"))
		return STOP;
	for (int i = 1; i < 134; i++)
		if (strerrorname_np(i) && !strcmp(strerrorname_np(i), name))
			return i;
	return 0;
}

static void read_line(const char *line)
{
	struct fault fault = { .times = 1 };
	char point[48], error[16];

	if (nr_faults == MAX_FAULTS || sscanf(line, "%47s %lu %15s %lu", point, &fault.nth, error, &fault.times) < 3)
		give_up(line);
	fault.point = find_point(point);
	fault.err = find_errno(error);
	if (!fault.point || !fault.err || !fault.nth)
		give_up(line);
	faults[nr_faults++] = fault;
}

static void __attribute__((constructor)) begin(void)
{
	const char *path = getenv("FAILCALLS");
	char line[128], counts_path[4096];
	FILE *f = path ? fopen(path, "re") : NULL;
	int fd;

	if (!f)
		give_up("FAILCALLS is not a file");
	while (fgets(line, sizeof(line), f))
		read_line(line);
	fclose(f);
	snprintf(counts_path, sizeof(counts_path), "%s.counts", path);
	fd = open(counts_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*counts) * MAX_FAULTS))
		give_up(counts_path);
	counts = mmap(NULL, sizeof(*counts) * MAX_FAULTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counts == MAP_FAILED)
		give_up(counts_path);
}

/* 0, or the errno with which the call fails. */
static int check(char type, uint32_t number, uint32_t op)
{
	int err = 0;

	for (size_t i = 0; counts && i < nr_faults; i++) {
		const struct fault *fault = &faults[i];
		uint64_t nth;

		if (fault->point->type != type || fault->point->number != number ||
		    (fault->point->op != ANY && fault->point->op != op))
			continue;
		nth = ++counts[i].calls;
		if (nth < fault->nth || (fault->times && nth >= fault->nth + fault->times))
			continue;
		counts[i].failed++;
		err = err ? err : fault->err;
	}
	return err;
}

static void end(int children_too)
{
	FILE *f = children_too ? fopen("/proc/thread-self/children", "re") : NULL;
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	kill(getpid(), SIGKILL);
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	uint32_t op = 0;
	va_list args;
	void *arg;
	int err;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!next)
		next = dlsym(RTLD_NEXT, "ioctl");
	if (request == AMDKFD_IOC_CRIU_OP)
		op = ((struct kfd_ioctl_criu_args *)arg)->op;
	else if (_IOC_TYPE(request) == 'd' && _IOC_NR(request) == 0x42)
		op = *(uint32_t *)arg;
	err = check(_IOC_TYPE(request), _IOC_NR(request), op);
	if (!err)
		return next(fd, request, arg);
	if (err < 0) {
		next(fd, request, arg);
		end(err == KILLALL);
	}
	errno = err;
	return -1;
}

int open(const char *path, int flags, ...)
{
	static int (*next)(const char *, int, ...);
	size_t len = strlen(path);
	va_list args;
	mode_t mode;
	int err;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (!next)
		next = dlsym(RTLD_NEXT, "open");
	err = len >= 8 && !strcmp(path + len - 8, "/dev/kfd") ? check(0, OPEN_KFD, 0) : 0;
	if (!err)
		return next(path, flags, mode);
	errno = err;
	return -1;
}

long ptrace(enum __ptrace_request request, ...)
{
	static long (*next)(enum __ptrace_request, pid_t, void *, void *);
	va_list args;
	pid_t pid;
	void *address, *data;
	long r;
	int err = check(0, PTRACE_ANY, 0);

	va_start(args, request);
	pid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (!next)
		next = dlsym(RTLD_NEXT, "ptrace");
	if (err > 0) {
		errno = err;
		return -1;
	}
	r = next(request, pid, address, data);
	if (err == KILL)
		kill(getpid(), SIGKILL);
	if (err == STOP)
		raise(SIGSTOP);
	if (err == TERM) {
		kill(getppid(), SIGTERM);
		kill(getpid(), SIGTERM);
	}
	return r;
}
