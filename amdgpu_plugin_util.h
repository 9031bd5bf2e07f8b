/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every folder needs and libc does not have: the log, failures, ownership, arrays and numbers, files, ioctls,
 * time. Nothing here calls into a folder: host/criu.c gives criu's log function to plugin_log_to().
 */
#ifndef AMDGPU_PLUGIN_UTIL_H
#define AMDGPU_PLUGIN_UTIL_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN_VERSION_MARK "amdgpu_plugin version " /* stands before it in the plugin's file */
/* "0.2+0b407ae": a number, and the commit, with "-dirty" for a source that was changed; without a plus: not known. */
extern const char *const plugin_version;

/* ---- log ---- */

/* Levels of criu's print_on_level(): they are part of its ABI. */
enum plugin_log_level {
	PLUGIN_LOG_ERROR = 1,
	PLUGIN_LOG_WARN = 2,
	PLUGIN_LOG_INFO = 3,
	PLUGIN_LOG_DEBUG = 4,
};

#define PLUGIN_LOG_LINE_MAX 1024

/* criu's log function. */
typedef void (*plugin_log_printer)(unsigned int level, const char *fmt, ...);

/* Where lines go. NULL, as at first: errors and warnings to standard error. */
void plugin_log_to(plugin_log_printer print);

/* Writes one line; keeps errno. */
void plugin_log(enum plugin_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes one finished line ("...\n") elsewhere than to criu's log. */
typedef void (*plugin_log_sink)(void *arg, enum plugin_log_level level, const char *line);

/* Diverts the lines of the calling thread; NULL ends that. For every thread but criu's own. */
void plugin_log_divert(plugin_log_sink sink, void *arg);

/* How many error lines this process has written; those that were diverted do not count. */
unsigned int plugin_error_lines(void);

/* Container engines show their users the lines of criu's log that have "Error ", with the blank. */
#define PLUGIN_ERROR_PREFIX "Error (amdgpu_plugin): "

#define pr_err(fmt, ...)   plugin_log(PLUGIN_LOG_ERROR, PLUGIN_ERROR_PREFIX fmt, ##__VA_ARGS__)
#define pr_warn(fmt, ...)  plugin_log(PLUGIN_LOG_WARN, "amdgpu_plugin: Warning: " fmt, ##__VA_ARGS__)
#define pr_info(fmt, ...)  plugin_log(PLUGIN_LOG_INFO, "amdgpu_plugin: " fmt, ##__VA_ARGS__)
#define pr_debug(fmt, ...) plugin_log(PLUGIN_LOG_DEBUG, "amdgpu_plugin: " fmt, ##__VA_ARGS__)

/* ---- failures ---- */

/*
 * The law for errors. A function that fails calls fail() and returns -errno at once, unless its header says "no message".
 * The first cause has the words: what is failed after it changes nothing. Whoever ends the call shows the text: the
 * plugin's hooks, amdgpu-checkpoint. Whoever tries something and goes on calls fail_clear(). Each thread
 * has its own text; the one that joins it takes the text over. pr_err() is for what is no failure of the call, such as
 * lines in front of a verdict, and for what fails in a clean-up.
 */
#define FAIL_TEXT_MAX 900 /* a line of the log has room for it */

/*
 * Keeps the text, if it is the thread's first, and returns @err, -errno; "%m" in @fmt is @err in words. Keeps errno. In
 * parentheses since cmocka has a macro of this name.
 */
int (fail)(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts words in front of the text that is kept; as fail() where there is none. */
int fail_in(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text of the calling thread, "" where nothing failed. */
const char *fail_text(void);
void fail_clear(void);
/* Writes the text as an error line and clears it. Whether there was one. */
bool fail_log(void);

/* -errno of the call just made; -EIO when a library failed without saying why. */
static inline int errno_or_eio(void)
{
	return errno > 0 ? -errno : -EIO;
}

/* ---- ownership ---- */

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_(f)	    __attribute__((cleanup(f)))
#define _cleanup_free_	    _cleanup_(cleanup_free)
#define _cleanup_close_	    _cleanup_(cleanup_close)
#define _cleanup_fclose_    _cleanup_(cleanup_fclose)
#define _cleanup_closedir_  _cleanup_(cleanup_closedir)

/* Hands the value over and leaves behind what the cleanup attribute ignores. */
static inline int steal_fd(int *fd)
{
	int ret = *fd;

	*fd = -1;
	return ret;
}

#define steal_ptr(p)                          \
	({                                    \
		__typeof__(p) *_pp = &(p);    \
		__typeof__(p) _ret = *_pp;    \
		*_pp = NULL;                  \
		_ret;                         \
	})

/* ---- arrays and numbers ---- */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A heap array with room for one more element of @size bytes behind its @nr ones. NULL when out of memory: it stays as
 * it was. For arrays that start as NULL and grow only by this; the room doubles, so that n elements take O(n) time.
 */
static inline void *array_grow(void *array, size_t nr, size_t size)
{
	return nr & (nr - 1) ? array : reallocarray(array, nr ? 2 * nr : 1, size);
}

/* Adds an element to such an array and counts it. 0 or -ENOMEM. */
#define array_add(array, nr, ...)                                                     \
	({                                                                            \
		__typeof__(array) _grown = array_grow(array, nr, sizeof(*(array)));   \
		if (_grown) {                                                         \
			(array) = _grown;                                             \
			_grown[(nr)++] = __VA_ARGS__;                                 \
		}                                                                     \
		_grown ? 0 : -ENOMEM;                                                 \
	})

/* For lists of fields that two structs have by the same names: from one into the other. */
#define COPY(field) to->field = from->field;

/* Compare elements that begin with such a number, for qsort() and bsearch(). */
static inline int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

#define add_overflows(a, b, ret) __builtin_add_overflow((a), (b), (ret))
#define mul_overflows(a, b, ret) __builtin_mul_overflow((a), (b), (ret))

/* @unit: not 0 */
static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* For a maximum that threads have in common. */
static inline void raise_to(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t now = atomic_load(most);

	while (value > now && !atomic_compare_exchange_weak(most, &now, value))
		;
}

/*
 * The digits of @base (10, or 16 with or without 0x) at the beginning of @text: no sign, no white space. *end is the first
 * byte after them. 0; -EINVAL without a digit; -ERANGE for more than @max. No message.
 */
int parse_digits(const char *text, int base, uint64_t max, const char **end, uint64_t *ret);

#define PAGE_BYTES	4096u
#define HUGE_PAGE_BYTES (2u << 20)

/* The length in front of an image's payload, little endian. */
#define LENGTH_PREFIX_BYTES 8
void length_prefix_put(uint8_t prefix[LENGTH_PREFIX_BYTES], uint64_t length);
uint64_t length_prefix_get(const uint8_t prefix[LENGTH_PREFIX_BYTES]);

/* ---- files ---- */

/* All of @size bytes. 0 or -errno; reading: -ENODATA where the file ends early. No message. */
int write_all(int fd, const void *data, size_t size);
int read_all(int fd, void *data, size_t size);

/*
 * Zeroed memory for this process and those that it will fork; munmap() gives it back. Pages that nobody touches cost
 * nothing. NULL when memory is short.
 */
void *shared_memory_new(size_t size);

/*
 * The rest of a file as a string in @size bytes. 0 or -errno: -EFBIG for a larger one, -EINVAL
 * for one with a NUL in it. No message.
 */
int read_text(int fd, char *text, size_t size);

/*
 * What a file is, with no question to its file system, which may be a user's and never answer: st_mode, st_dev, st_rdev and
 * st_ino. @path "": @dir_fd itself. 0 or -errno, which may be the file system's: no message.
 */
int stat_quietly(int dir_fd, const char *path, struct stat *ret);

/* The decimal number with which a file begins. 0 or -errno, no message. */
int read_number_at(int dir_fd, const char *path, uint64_t *ret);

/*
 * The names in a directory that are numbers (pids, fds, nodes), ascending. *ret is heap memory
 * of the caller. 0 or -errno, no message.
 */
int list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr);

/* Whether a list of pids, fds, ... has one. */
static inline bool numbers_have(const int *list, size_t nr, int number)
{
	for (size_t i = 0; i < nr; i++)
		if (list[i] == number)
			return true;
	return false;
}

/* Opens /proc/PID/NAME. An fd that the caller owns, or -errno; a file to read, or NULL and errno. */
int proc_open(pid_t pid, const char *name, int flags);
FILE *proc_file(pid_t pid, const char *name);
/* As list_numbers(), of /proc/PID/fd or /proc/PID/task. */
static inline int proc_list(pid_t pid, const char *name, int **ret, size_t *ret_nr)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return list_numbers(AT_FDCWD, path, ret, ret_nr);
}

/* What a file of /proc says after "NAME:", cut to @size bytes. 0 or -errno: -ENODATA without such a line. */
int proc_value(const char *path, const char *name, char *text, size_t size);
/* The same of fdinfo of our own @fd. */
int fdinfo_value(int fd, const char *name, char *text, size_t size);
/* The last number that /proc/PID/status has after "NAME:"; 0 where there is none. */
uint64_t proc_status(pid_t pid, const char *name, int base);
/* Whether a signal to the whole process waits to be taken. */
static inline bool proc_has_pending(pid_t pid, int signal)
{
	return proc_status(pid, "ShdPnd", 16) & 1ull << (signal - 1);
}

/* The rest of /proc/PID/stat behind the name, which may have any character; NULL: there is no such process. */
const char *proc_stat(pid_t pid, char *line, size_t size);

/* ---- ioctls ---- */

/* An ioctl, repeated after a signal (EINTR). 0 or -errno, no message. */
int call_ioctl(int fd, unsigned long op, void *args);
/* The same of a render node, whose driver also asks for a repetition by EAGAIN. */
int drm_call(int fd, unsigned long op, void *args);

/*
 * Calls @step with each of @nr items of @size bytes, up to 512 of them at the same time, in threads that take no signals and
 * have ended on return. Where no thread can be had, one after the other. @step writes no messages.
 */
void all_at_once(void *items, size_t nr, size_t size, void *(*step)(void *item));

/* ---- time ---- */

/* CLOCK_MONOTONIC. */
double monotonic_seconds(void);

/*
 * How far this process' CLOCK_MONOTONIC is ahead of the kernel's own, in nanoseconds. criu gives the tasks that it restores
 * a time namespace, and drivers, whose ioctls take points of time, do not know of it.
 */
int64_t monotonic_offset_ns(void);
/* The kernel's own time in @ns from now. @offset: of monotonic_offset_ns(). */
uint64_t kernel_time_in(uint64_t ns, int64_t offset);

#endif
