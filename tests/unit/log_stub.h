/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of a unit test: keeps the lines, so that a test can ask what was said. */
#ifndef UNIT_LOG_STUB_H
#define UNIT_LOG_STUB_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

static char log_lines[65536];
static unsigned int log_nr_errors;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void log_keep(unsigned int level, const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	pthread_mutex_lock(&log_lock);
	strncat(log_lines, line, sizeof(log_lines) - strlen(log_lines) - 1);
	log_nr_errors += level == PLUGIN_LOG_ERROR;
	pthread_mutex_unlock(&log_lock);
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(log_keep);
}

/* As those do that end a call: what failed has its line when a test asks for lines. */
static inline char *log_now(void)
{
	fail_log();
	return log_lines;
}

#define log_text   log_now()
#define log_errors (log_now(), log_nr_errors) /* error lines since log_clear() */

static inline void log_clear(void)
{
	fail_clear();
	log_lines[0] = '\0';
	log_nr_errors = 0;
}

#endif
