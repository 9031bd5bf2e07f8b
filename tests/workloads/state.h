/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state file: what a script sees of a running workload.
 *
 * Always STATE_BYTES long (criu compares sizes), "key value" lines; the first and the
 * last line are "stamp N" with the same N, unless a reader met a writer.
 */
#ifndef WORKLOADS_STATE_H
#define WORKLOADS_STATE_H

#include <stddef.h>
#include <stdint.h>

#define STATE_BYTES 4096

struct state_file {
	int fd;
	uint64_t stamp;
	size_t used;
	char text[STATE_BYTES];
};

/* Creates or truncates @path. -errno, reported. */
int state_open(struct state_file *state, const char *path);

/* A new text: begin, any number of lines, end (which writes the file; -errno, reported). */
void state_begin(struct state_file *state);
void state_line(struct state_file *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int state_end(struct state_file *state);

#endif
