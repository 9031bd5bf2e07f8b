// SPDX-License-Identifier: GPL-2.0-only
/* Calls nothing of the plugin; criu's log function is handed in. */
#define _GNU_SOURCE
#include "amdgpu_plugin_util.h"

#include <ctype.h>
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#ifndef STATX_TYPE /* musl before 1.2.5 */
#include <linux/stat.h>
#define statx(...) (int)syscall(SYS_statx, __VA_ARGS__)
#endif

static plugin_log_printer printer;
static unsigned int nr_error_lines;

static _Thread_local struct {
	plugin_log_sink sink;
	void *arg;
} diverted;

static _Thread_local char failure[FAIL_TEXT_MAX]; /* "": none */

/* ---- log ---- */

void plugin_log_to(plugin_log_printer print)
{
	printer = print;
}

void plugin_log_divert(plugin_log_sink sink, void *arg)
{
	diverted.sink = sink;
	diverted.arg = arg;
}

unsigned int plugin_error_lines(void)
{
	return __atomic_load_n(&nr_error_lines, __ATOMIC_RELAXED);
}

void plugin_log(enum plugin_log_level level, const char *fmt, ...)
{
	int saved = errno;
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (diverted.sink)
		diverted.sink(diverted.arg, level, line);
	else if (printer)
		printer(level, "%s", line);
	else if (level <= PLUGIN_LOG_WARN)
		fputs(line, stderr);
	if (level == PLUGIN_LOG_ERROR && !diverted.sink)
		__atomic_fetch_add(&nr_error_lines, 1, __ATOMIC_RELAXED);
	errno = saved;
}

/* ---- failures ---- */

int fail(int err, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (!failure[0]) {
		errno = -err; /* for %m */
		va_start(args, fmt);
		vsnprintf(failure, sizeof(failure), fmt, args);
		va_end(args);
	}
	errno = saved;
	return err;
}

int fail_in(int err, const char *fmt, ...)
{
	char cause[FAIL_TEXT_MAX];
	int saved = errno;
	va_list args;

	memcpy(cause, failure, sizeof(cause));
	errno = -err;
	va_start(args, fmt);
	vsnprintf(failure, sizeof(failure), fmt, args);
	va_end(args);
	if (cause[0])
		strncat(failure, ": ", sizeof(failure) - strlen(failure) - 1);
	strncat(failure, cause, sizeof(failure) - strlen(failure) - 1);
	errno = saved;
	return err;
}

const char *fail_text(void)
{
	return failure;
}

void fail_clear(void)
{
	failure[0] = '\0';
}

bool fail_log(void)
{
	if (!failure[0])
		return false;
	pr_err("%s\n", failure);
	fail_clear();
	return true;
}

/* ---- numbers ---- */

int parse_digits(const char *text, int base, uint64_t max, const char **end, uint64_t *ret)
{
	unsigned long long value;
	char *after;

	/* What strtoull() would take besides: a sign, white space. */
	if (!isxdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &after, base);
	if (after == text)
		return -EINVAL;
	if (errno || value > max)
		return -ERANGE;
	*end = after;
	*ret = value;
	return 0;
}

void length_prefix_put(uint8_t prefix[LENGTH_PREFIX_BYTES], uint64_t length)
{
	length = htole64(length);
	memcpy(prefix, &length, sizeof(length));
}

uint64_t length_prefix_get(const uint8_t prefix[LENGTH_PREFIX_BYTES])
{
	uint64_t length;

	memcpy(&length, prefix, sizeof(length));
	return le64toh(length);
}

/* ---- files ---- */

int write_all(int fd, const void *data, size_t size)
{
	const uint8_t *from = data;

	while (size) {
		ssize_t n = write(fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		size -= (size_t)n;
	}
	return 0;
}

int read_all(int fd, void *data, size_t size)
{
	uint8_t *to = data;

	while (size) {
		ssize_t n = read(fd, to, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

int read_text(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, size - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (len == size)
			return -EFBIG;
	}
	text[len] = '\0';
	return strlen(text) == len ? 0 : -EINVAL;
}

void *shared_memory_new(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int stat_quietly(int dir_fd, const char *path, struct stat *ret)
{
	struct statx from;

	if (statx(dir_fd, path, AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &from))
		return -errno;
	*ret = (struct stat){
		.st_mode = from.stx_mode,
		.st_dev = makedev(from.stx_dev_major, from.stx_dev_minor),
		.st_rdev = makedev(from.stx_rdev_major, from.stx_rdev_minor),
		.st_ino = from.stx_ino,
	};
	return 0;
}

int read_number_at(int dir_fd, const char *path, uint64_t *ret)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	char text[32];
	const char *end;
	int err = fd < 0 ? -errno : read_text(fd, text, sizeof(text));

	return err ? err : parse_digits(text, 10, UINT64_MAX, &end, ret);
}

int list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	_cleanup_free_ int *numbers = NULL;
	struct dirent *entry;
	size_t nr = 0;

	if (!dir)
		return -errno;
	steal_fd(&fd);
	while (errno = 0, (entry = readdir(dir))) {
		size_t len = strspn(entry->d_name, "0123456789");

		if (len && len < 10 && !entry->d_name[len] && array_add(numbers, nr, atoi(entry->d_name)))
			return -ENOMEM;
	}
	if (errno)
		return -errno;
	if (nr)
		qsort(numbers, nr, sizeof(*numbers), compare_u32); /* none is negative */
	*ret = steal_ptr(numbers);
	*ret_nr = nr;
	return 0;
}

int proc_open(pid_t pid, const char *name, int flags)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

FILE *proc_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

int proc_value(const char *path, const char *name, char *text, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	size_t len = strlen(name);
	char line[256];

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) || line[len] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(text, size, "%s", line + len + 1 + (line[len + 1] == '\t'));
		return 0;
	}
	return -ENODATA;
}

int fdinfo_value(int fd, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return proc_value(path, name, text, size);
}

uint64_t proc_status(pid_t pid, const char *name, int base)
{
	char path[64], text[256];
	const char *last;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (proc_value(path, name, text, sizeof(text)))
		return 0;
	last = strrchr(text, '\t');
	return strtoull(last ? last : text, NULL, base);
}

const char *proc_stat(pid_t pid, char *line, size_t size)
{
	_cleanup_fclose_ FILE *f = proc_file(pid, "stat");
	const char *end = f && fgets(line, (int)size, f) ? strrchr(line, ')') : NULL;

	return end ? end + 2 : NULL;
}

/* ---- ioctls ---- */

int call_ioctl(int fd, unsigned long op, void *args)
{
	int r;

	do
		r = ioctl(fd, op, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int drm_call(int fd, unsigned long op, void *args)
{
	int err;

	do
		err = call_ioctl(fd, op, args);
	while (err == -EAGAIN);
	return err;
}

/* A thread takes memory and a pid of the cgroup, and both may be limited. */
#define MOST_THREADS 512u

static void some_at_once(char *items, size_t nr, size_t size, void *(*step)(void *item))
{
	struct {
		pthread_t thread;
		bool is_started;
	} threads[MOST_THREADS];
	sigset_t all, before;

	/* The caller's signals, such as criu's, belong to its own thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < nr; i++)
		threads[i].is_started = !pthread_create(&threads[i].thread, NULL, step, items + i * size);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < nr; i++)
		if (threads[i].is_started)
			pthread_join(threads[i].thread, NULL);
		else
			step(items + i * size);
}

void all_at_once(void *items, size_t nr, size_t size, void *(*step)(void *item))
{
	for (size_t i = 0; i < nr; i += MOST_THREADS)
		some_at_once((char *)items + i * size, nr - i < MOST_THREADS ? nr - i : MOST_THREADS, size, step);
}

/* ---- time ---- */

double monotonic_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Without the file there are no time namespaces. */
int64_t monotonic_offset_ns(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/timens_offsets", "re");
	int64_t seconds, ns;

	if (!f || fscanf(f, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) != 2)
		return 0;
	return seconds * 1000000000 + ns;
}

uint64_t kernel_time_in(uint64_t ns, int64_t offset)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)(t.tv_sec * 1000000000 + t.tv_nsec - offset) + ns;
}
