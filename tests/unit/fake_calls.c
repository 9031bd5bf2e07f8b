// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wrapped calls of the stand-in for the kernel: where they lead, and which one fails.
 * With --wrap, __wrap_NAME is called in the place of NAME, and __real_NAME is that.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "fake_drm.h"
#include "fake_kfd.h"
#include "fake_kfd_internal.h"
#include "wrap.h"

#define MAX_ALLOCATED 4096

/* ---- the call that fails ---- */

/* Of all threads: also the content engine's and those of the thread that starts it. Which of them makes the n-th call may vary. */
static atomic_bool armed;
static _Thread_local int inside; /* of the stand-in */
static atomic_uint calls;
static struct {
	unsigned int nth;
	const char *name;
	int err;
	bool goes_on; /* all that follow fail, too */
} fault;
static const char *_Atomic failed;

void fake_fail(unsigned int nth, int err)
{
	armed = false;
	fake_trace();
	calls = 0;
	fault = (typeof(fault)){ .nth = nth, .err = err };
	failed = NULL;
	fake_seen.was_killed = fake_seen.fails_at_exit = false;
	fake_seen.nr_allocated = 0;
	armed = true;
}

void fake_die_at(unsigned int nth)
{
	fake_fail(nth, EIO);
	fault.goes_on = true;
}

void fake_fail_named(const char *name, int err)
{
	fake_fail(0, err);
	fault.name = name;
}

const char *fake_failed(void)
{
	armed = false;
	return failed;
}

static bool is_through(void)
{
	return inside || fake_drm_depth;
}

static bool hit(const char *name)
{
	if (!armed || is_through())
		return false;
	if (++calls != fault.nth && (failed || !fault.name || strcmp(name, fault.name)) && !(fault.goes_on && failed))
		return false;
	failed = name;
	errno = fault.err;
	return true;
}

static bool hit_memory(const char *name)
{
	bool ret = hit(name);

	if (ret)
		errno = ENOMEM;
	return ret;
}

/* ---- paths ---- */

static const char *place(const char *path, char room[PATH_MAX])
{
	static const char *const ours[] = { "/sys/class/kfd/kfd", "/sys/class/drm", "/sys/dev/char", "/sys/module/amdgpu",
					    "/dev/kfd", "/dev/dri", "/proc/471", "/proc/1/root" };
	size_t i;

	for (i = 0; !is_through() && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strncmp(path, ours[i], strlen(ours[i])) || !strcmp(path, "/proc")) {
			snprintf(room, PATH_MAX, "%s%s", fake_root, path);
			return room;
		}
	return path;
}

/* ---- calls that only fail ---- */

WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), -1)
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), -1)
WRAP(ssize_t, pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), -1)
WRAP(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t off), (fd, buf, n, off), -1)
WRAP(int, ftruncate, (int fd, off_t len), (fd, len), -1)
WRAP(int, dup, (int fd), (fd), -1)

/* What has been allocated since fake_fail(). */
static pthread_mutex_t allocated_lock = PTHREAD_MUTEX_INITIALIZER;
static const void *allocated[MAX_ALLOCATED];

static void *track(void *mem)
{
	if (!mem || !armed || is_through())
		return mem;
	pthread_mutex_lock(&allocated_lock);
	if (fake_seen.nr_allocated == MAX_ALLOCATED)
		abort();
	allocated[fake_seen.nr_allocated++] = mem;
	pthread_mutex_unlock(&allocated_lock);
	return mem;
}

static void untrack(const void *mem)
{
	size_t i;

	pthread_mutex_lock(&allocated_lock);
	for (i = fake_seen.nr_allocated; mem && i; i--)
		if (allocated[i - 1] == mem) {
			allocated[i - 1] = allocated[--fake_seen.nr_allocated];
			break;
		}
	pthread_mutex_unlock(&allocated_lock);
}

#define WRAP_MEMORY(name, args, pass)                                         \
	void *__real_##name args;                                             \
	void *__wrap_##name args                                              \
	{                                                                     \
		return hit_memory(#name) ? NULL : track(__real_##name pass);  \
	}

WRAP_MEMORY(malloc, (size_t size), (size))
WRAP_MEMORY(calloc, (size_t n, size_t size), (n, size))
WRAP_MEMORY(strdup, (const char *text), (text))

void *__real_reallocarray(void *mem, size_t n, size_t size);
void *__wrap_reallocarray(void *mem, size_t n, size_t size)
{
	void *grown;

	if (hit_memory("reallocarray"))
		return NULL;
	untrack(mem);
	grown = __real_reallocarray(mem, n, size);
	return track(grown);
}

void __real_free(void *mem);
void __wrap_free(void *mem)
{
	untrack(mem);
	__real_free(mem);
}

int __real_fstat(int fd, struct stat *st);

/* Of a file that was written, close() may be the first to say that the disk is full. */
static bool is_written(int fd)
{
	struct stat st;

	return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && !__real_fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_nlink && st.st_size;
}

/* Closed it is in any case. */
int __real_close(int fd);
int __wrap_close(int fd)
{
	const char *name = !is_through() && is_written(fd) ? FAKE_CLOSE_OF_WRITTEN : "close";
	int ret = __real_close(fd);

	return hit(name) ? -1 : ret;
}

void __wrap__exit(int status);

/* A handler that belongs to no library leaves with its argument as the status; the program does not do so. */
int __real___cxa_atexit(void (*function)(void *), void *arg, void *dso);
int __wrap___cxa_atexit(void (*function)(void *), void *arg, void *dso)
{
	if (dso || (void *)function != (void *)__wrap__exit)
		return __real___cxa_atexit(function, arg, dso);
	fake_seen.fails_at_exit = arg != NULL;
	return 0;
}

/* The program goes on where fake_exit is set; the process is not to be used any more. */
jmp_buf fake_exit;
void __wrap__exit(int status)
{
	longjmp(fake_exit, 1);
}

int __wrap_kill(pid_t pid, int sig)
{
	/* Of init, a group or everybody. */
	if (pid <= 1)
		abort();
	fake_seen.was_killed = pid == getpid() && sig == SIGKILL;
	return 0;
}

/* ---- calls with a path ---- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	char room[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return hit("open") ? -1 : __real_open(place(path, room), flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	char room[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (hit("openat"))
		return -1;
	/* The machine's own, whose locks are those of real restores (kernel/usage.c). */
	if (!strcmp(path, "null"))
		return memfd_create("null", MFD_CLOEXEC);
	return __real_openat(dir, place(path, room), flags, mode);
}

int __real_access(const char *path, int mode);

/* Of a render node, where it was made; it is the same for all its files. */
static const char *place_fdinfo(const char *path, int fd, char room[PATH_MAX])
{
	struct stat st;

	if (is_through() || __real_fstat(fd, &st) || fake_device_of(&st) < FAKE_RENDER_A)
		return path;
	snprintf(room, PATH_MAX, "%s/fdinfo/%d", fake_root, fake_device_of(&st));
	return __real_access(room, F_OK) ? path : room;
}

static enum fake_device device_of_fd(int fd);
static FILE *open_fdinfo(int fd)
{
	FILE *f;

	inside++;
	f = fmemopen(NULL, 64, "w+");
	if (f)
		fprintf(f, "size: 8192\ncount: %d\n", fake_gem_references(fd));
	if (f)
		rewind(f);
	inside--;
	return f;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	char room[PATH_MAX];
	int fd;

	if (hit("fopen"))
		return NULL;
	/* What the kernel says of a dma-buf. */
	if (!is_through() && sscanf(path, "/proc/self/fdinfo/%d", &fd) == 1 && device_of_fd(fd) == FAKE_NO_DEVICE)
		return open_fdinfo(fd);
	if (sscanf(path, "/proc/self/fdinfo/%d", &fd) == 1)
		path = place_fdinfo(path, fd, room);
	return __real_fopen(place(path, room), mode);
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
	char room[PATH_MAX];

	return hit("opendir") ? NULL : __real_opendir(place(path, room));
}

ssize_t __real_readlink(const char *path, char *buf, size_t n);
ssize_t __wrap_readlink(const char *path, char *buf, size_t n)
{
	char room[PATH_MAX];

	return hit("readlink") ? -1 : __real_readlink(place(path, room), buf, n);
}

/* It never fails here: without the names of render nodes the task would go to another root directory. */
int __wrap_access(const char *path, int mode)
{
	char room[PATH_MAX];

	return __real_access(place(path, room), mode);
}

int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st)
{
	char room[PATH_MAX];

	if (hit("stat") || __real_stat(place(path, room), st))
		return -1;
	if (!is_through())
		fake_stat(st);
	return 0;
}

int __real_statx(int dir, const char *path, int flags, unsigned int mask, struct statx *to);
int __wrap_statx(int dir, const char *path, int flags, unsigned int mask, struct statx *to)
{
	char room[PATH_MAX];
	struct stat st;

	if (hit("statx") || __real_statx(dir, place(path, room), flags, mask, to))
		return -1;
	if (is_through())
		return 0;
	st = (struct stat){
		.st_mode = to->stx_mode, .st_ino = to->stx_ino, .st_dev = makedev(to->stx_dev_major, to->stx_dev_minor),
		.st_rdev = makedev(to->stx_rdev_major, to->stx_rdev_minor),
	};
	fake_stat(&st);
	to->stx_mode = (uint16_t)st.st_mode;
	to->stx_ino = st.st_ino;
	to->stx_rdev_major = major(st.st_rdev);
	to->stx_rdev_minor = minor(st.st_rdev);
	return 0;
}

int __wrap_fstat(int fd, struct stat *st)
{
	if (hit("fstat") || __real_fstat(fd, st))
		return -1;
	if (!is_through())
		fake_stat(st);
	return 0;
}

/* ---- devices ---- */

static enum fake_device device_of_fd(int fd)
{
	struct stat st;

	return __real_fstat(fd, &st) ? FAKE_NO_DEVICE : fake_device_of(&st);
}

/* Which of the KFD's operations: a name for each, as the loop has to know them apart. */
static const char *ioctl_name(enum fake_device device, unsigned long op, const void *arg)
{
	static const char *const names[] = { "PROCESS_INFO", "CHECKPOINT", "UNPAUSE", "RESTORE", "RESUME" };
	uint32_t criu_op;

	if (device != FAKE_KFD || (op & 0xff) != 0x22)
		return "ioctl";
	memcpy(&criu_op, (const char *)arg + 48, sizeof(criu_op));
	return criu_op < 5 ? names[criu_op] : "ioctl";
}

/* Thousands of numbers are tried out, of which the first few show what there is to show. */
static bool is_another_try(enum fake_device device, unsigned long op, void *arg)
{
	if (device == FAKE_NO_DEVICE || device == FAKE_KFD)
		return false;
	if (op == DRM_IOCTL_AMDGPU_CTX)
		return ((union drm_amdgpu_ctx *)arg)->in.ctx_id > 2;
	return op == DRM_IOCTL_SYNCOBJ_QUERY &&
	       *(uint32_t *)(uintptr_t)((struct drm_syncobj_timeline_array *)arg)->handles > 2;
}

int __real_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...)
{
	enum fake_device device = device_of_fd(fd);
	va_list args;
	void *arg;
	int err;

	va_start(args, op);
	arg = va_arg(args, void *);
	va_end(args);
	if (!is_another_try(device, op, arg) && hit(ioctl_name(device, op, arg)))
		return -1;
	if (device == FAKE_NO_DEVICE)
		return __real_ioctl(fd, op, arg);
	inside++;
	err = fake_ioctl(device, fd, op, arg);
	inside--;
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

void *__real_mmap(void *mem, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *mem, size_t len, int prot, int flags, int fd, off_t off)
{
	if (hit_memory("mmap"))
		return MAP_FAILED;
	/* Doorbells: memory is as good. */
	if (fd >= 0 && !is_through() && device_of_fd(fd) == FAKE_KFD)
		return __real_mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return __real_mmap(mem, len, prot, flags, fd, off);
}

long __real_syscall(long number, ...);
/* A restored process has the pid that it had. */
pid_t __real_getpid(void);
pid_t __wrap_getpid(void)
{
	return FAKE_PID;
}

long __wrap_syscall(long number, ...)
{
	long a[6], ret;
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (hit("syscall"))
		return -1;
	if (number == SYS_pidfd_open && a[0] >= FAKE_PID && a[0] <= FAKE_LOST_PID && !is_through())
		return __real_syscall(SYS_pidfd_open, __real_getpid(), 0); /* it lives */
	if (number == SYS_kcmp)
		a[0] = a[1] = __real_getpid();
	if (number != SYS_pidfd_getfd || is_through())
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	inside++;
	ret = fake_process_file((int)a[1]);
	inside--;
	if (ret < 0)
		errno = EBADF;
	return ret;
}
