/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks for the conformance programs. Each prints "ok - text" or
 * "not ok - text (got X, want Y)"; conformance_end() prints the last line,
 * "N passed, N failed", and returns the program's exit status: 0 when at
 * least one check ran and none failed.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned int conformance_passed, conformance_failed;

/* Counts the check and prints its line; @got: what is said besides when it is not ok. Returns @ok. */
__attribute__((format(printf, 3, 0))) static inline bool conformance_result(bool ok, const char *got, const char *text,
									    va_list args)
{
	*(ok ? &conformance_passed : &conformance_failed) += 1;
	printf(ok ? "ok - " : "not ok - ");
	vprintf(text, args);
	printf("%s\n", ok ? "" : got);
	fflush(stdout);
	return ok;
}

/* A condition that has no numbers to show. Returns it. */
__attribute__((format(printf, 2, 3))) static inline bool check_true(bool ok, const char *text, ...)
{
	va_list args;

	va_start(args, text);
	conformance_result(ok, "", text, args);
	va_end(args);
	return ok;
}

/* Two numbers are equal. */
__attribute__((format(printf, 3, 4))) static inline bool check_u64(uint64_t got, uint64_t want, const char *text, ...)
{
	char numbers[64];
	va_list args;

	snprintf(numbers, sizeof(numbers), " (got %#" PRIx64 ", want %#" PRIx64 ")", got, want);
	va_start(args, text);
	conformance_result(got == want, numbers, text, args);
	va_end(args);
	return got == want;
}

static inline const char *conformance_errno_name(int err)
{
	return err ? strerrorname_np(err) ? strerrorname_np(err) : "unknown errno" : "success";
}

/*
 * The outcome of a system call: @ret is what it returned (negative for failure, with errno
 * still as it left it), @want_errno is 0 for "succeeds". Call it as check_errno(ioctl(...), EINVAL, "...").
 */
__attribute__((format(printf, 3, 4))) static inline bool check_errno(long ret, int want_errno, const char *text, ...)
{
	int got = ret < 0 ? errno : 0;
	char names[64];
	va_list args;

	snprintf(names, sizeof(names), " (got %s, want %s)", conformance_errno_name(got),
		 conformance_errno_name(want_errno));
	va_start(args, text);
	conformance_result(got == want_errno, names, text, args);
	va_end(args);
	return got == want_errno;
}

/* A check that cannot be made here; says why. Counts as neither passed nor failed. */
__attribute__((format(printf, 1, 2))) static inline void check_skip(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	printf("skip - ");
	vprintf(text, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static inline int conformance_end(void)
{
	printf("%u passed, %u failed\n", conformance_passed, conformance_failed);
	return conformance_failed || !conformance_passed;
}

/*
 * The kernel release whose rules the GPUs follow, major * 100 + minor, from the program's argument ("7.3"). Without
 * one: those of a description that names no release.
 */
static inline unsigned int release_of(int argc, char **argv)
{
	unsigned int major, minor;

	if (argc < 2)
		return 702;
	if (sscanf(argv[1], "%u.%u", &major, &minor) != 2)
		errx(2, "usage: %s [RELEASE]", argv[0]);
	return major * 100 + minor;
}

/* Whether the argument is point release @point ("6.12.111") or a later one of that release. */
static inline bool is_since(int argc, char **argv, const char *point)
{
	unsigned int wanted[3], is[3];

	return argc > 1 && sscanf(point, "%u.%u.%u", &wanted[0], &wanted[1], &wanted[2]) == 3 &&
	       sscanf(argv[1], "%u.%u.%u", &is[0], &is[1], &is[2]) == 3 && is[0] == wanted[0] && is[1] == wanted[1] &&
	       is[2] >= wanted[2];
}

/* Whether the argument is 7.2.12 or a later one, of any release. */
static inline bool is_since_7_2_12(int argc, char **argv)
{
	return is_since(argc, argv, "7.2.12") || release_of(argc, argv) >= 703;
}

#endif
