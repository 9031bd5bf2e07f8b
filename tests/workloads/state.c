// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state file, rewritten in place by one pwrite on a descriptor that stays open.
 *
 * No rename and no growth: the open file and its size have to be the same when criu
 * brings the process back.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "state.h"

/* Room that state_line() leaves for the last line. */
#define STATE_TAIL 32

int state_open(struct state_file *state, const char *path, unsigned int number)
{
	char numbered[4096];

	memset(state, 0, sizeof(*state));
	snprintf(numbered, sizeof(numbered), "%s.%u", path, number);
	path = number ? numbered : path;
	state->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return state->fd < 0 ? report(errno, "state file %s: %m", path) : 0;
}

void state_begin(struct state_file *state, const char *phase)
{
	memset(state->text, '\n', sizeof(state->text));
	state->used = 0;
	state_line(state, "stamp %" PRIu64, ++state->stamp);
	state_line(state, "pid %d", (int)getpid());
	state_line(state, "phase %s", phase);
	state_line(state, "generation %" PRIu64, state->generation);
	state_line(state, "verifies %" PRIu64, state->verifies);
	state_line(state, "verified_bytes %" PRIu64, state->verified_bytes);
	state_line(state, "message %s", report_last());
}

void state_line(struct state_file *state, const char *fmt, ...)
{
	size_t room = sizeof(state->text) - STATE_TAIL - state->used;
	va_list args;
	int n;

	if (state->used + STATE_TAIL >= sizeof(state->text))
		return;
	va_start(args, fmt);
	n = vsnprintf(state->text + state->used, room, fmt, args);
	va_end(args);
	/* A line that does not fit is left out whole. */
	if (n < 0 || (size_t)n >= room) {
		memset(state->text + state->used, '\n', room);
		return;
	}
	state->used += (size_t)n;
	state->text[state->used++] = '\n';
}

int state_end(struct state_file *state)
{
	int n = snprintf(state->text + state->used, STATE_TAIL, "stamp %" PRIu64 "\n", state->stamp);
	ssize_t written;

	state->text[state->used + (size_t)n] = '\n';
	written = pwrite(state->fd, state->text, sizeof(state->text), 0);
	if (written < 0)
		return report(errno, "writing the state file: %m");
	if (written != (ssize_t)sizeof(state->text))
		return report(ENOSPC, "writing the state file: %zd of %zu bytes", written, sizeof(state->text));
	return 0;
}

int state_write(struct state_file *state, const char *phase)
{
	state_begin(state, phase);
	return state_end(state);
}
