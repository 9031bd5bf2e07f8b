// SPDX-License-Identifier: GPL-2.0-only
/*
 * Error lines of the workloads.
 *
 * A checkpointed process has no terminal: what went wrong must be in a file that
 * outlives it. stderr is that file, and the last line is repeated in the state file.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "report.h"

static const char *program = "workload";
static char last[512];

void report_name(const char *name)
{
	program = name;
}

int report(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last, sizeof(last), fmt, args);
	va_end(args);
	/* One write per line: parent and children share the file. */
	dprintf(STDERR_FILENO, "%s[%d]: %s\n", program, (int)getpid(), last);
	errno = err > 0 ? err : EIO;
	return -errno;
}

const char *report_last(void)
{
	return last;
}
