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
	uint64_t generation, verifies, verified_bytes; /* of the workload, which counts them */
};

/* Creates or truncates @path, or @path.@number for a number that is not 0. -errno, reported. */
int state_open(struct state_file *state, const char *path, unsigned int number);

/*
 * A new text: begin, which tells pid, phase, counters and the last message; any number of lines; end, which writes the file
 * (-errno, reported).
 */
void state_begin(struct state_file *state, const char *phase);
void state_line(struct state_file *state, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int state_end(struct state_file *state);
/* All of it, for a text without lines of its own. */
int state_write(struct state_file *state, const char *phase);

#endif
