// SPDX-License-Identifier: GPL-2.0-only
/* Lines and texts for people. */
#include <stdarg.h>

#include "amdgpu_plugin_util.h"
#include "tool/print.h"

#define NR_BUFFERS 8

static char *next_buffer(void)
{
	static char buffers[NR_BUFFERS][SAFE_MAX];
	static unsigned int next;

	return buffers[next++ % NR_BUFFERS];
}

/* The plugin's lines begin with its name, which here would say nothing. */
static const char *without_prefix(const char *line)
{
	static const char *const prefixes[] = { PLUGIN_ERROR_PREFIX, "amdgpu_plugin: " };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(line, prefixes[i], strlen(prefixes[i])))
			return line + strlen(prefixes[i]);
	return line;
}

static void print_line(unsigned int level, const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	line[strcspn(line, "\n")] = '\0';
	if (level <= PLUGIN_LOG_WARN)
		complain("%s", without_prefix(line));
}

void print_start(void)
{
	plugin_log_to(print_line);
}

int complain(const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	make_safe(line);
	fprintf(stderr, "amdgpu-image: %s\n", line);
	return TOOL_FAIL;
}

static void keep_line(void *arg, enum plugin_log_level level, const char *line)
{
	char *caught = arg;

	if (level != PLUGIN_LOG_ERROR || caught[0])
		return;
	snprintf(caught, CAUGHT_MAX, "%s", without_prefix(line));
	caught[strcspn(caught, "\n")] = '\0';
}

void catch_begin(char caught[CAUGHT_MAX])
{
	caught[0] = '\0';
	plugin_log_divert(keep_line, caught);
}

void catch_end(void)
{
	plugin_log_divert(NULL, NULL);
}

const char *colour(enum colour colour)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m" };
	const char *off = getenv("NO_COLOR"), *term = getenv("TERM");

	if ((off && off[0]) || !term || !strcmp(term, "dumb") || !isatty(STDOUT_FILENO))
		return "";
	return codes[colour];
}

void make_safe(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

const char *safe(const char *text)
{
	char *buffer = next_buffer();

	snprintf(buffer, SAFE_MAX, "%s", text);
	make_safe(buffer);
	return buffer;
}

const char *size_text(uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	char *buffer = next_buffer();
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	if (value == (double)(uint64_t)value)
		snprintf(buffer, SAFE_MAX, "%.0f %s", value, units[unit]);
	else
		snprintf(buffer, SAFE_MAX,
			 value < 10    ? "%.2f %s"
			 : value < 100 ? "%.1f %s"
				       : "%.0f %s",
			 value, units[unit]);
	return buffer;
}
