/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line per failure, on stderr, kept for the state file.
 */
#ifndef WORKLOADS_REPORT_H
#define WORKLOADS_REPORT_H

/* Names the program in front of every line; the default is "workload". */
void report_name(const char *name);

/*
 * Writes "NAME[PID]: message" to stderr, remembers the message and returns -@err, which errno is then,
 * so that a failing function ends with `return report(errno, "...")`.
 */
int report(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The message of the last report(), "" when there was none. */
const char *report_last(void);

#endif
