/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of a unit test: keeps the lines, so that a test can ask what was said. */
#ifndef UNIT_LOG_STUB_H
#define UNIT_LOG_STUB_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

static char log_text[65536];
static unsigned int log_errors; /* error lines since log_clear() */

void plugin_log(enum plugin_log_level level, const char *fmt, ...)
{
	size_t used = strlen(log_text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(log_text + used, sizeof(log_text) - used, fmt, args);
	va_end(args);
	log_errors += level == PLUGIN_LOG_ERROR;
}

static inline void log_clear(void)
{
	log_text[0] = '\0';
	log_errors = 0;
}

#endif
