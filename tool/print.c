// SPDX-License-Identifier: GPL-2.0-only
/* Text, JSON (RFC 8259) and lines on standard error. */
#include <inttypes.h>
#include <stdarg.h>

#include "amdgpu_plugin_util.h"
#include "tool/print.h"

#define JSON_MAX_DEPTH 16
/* Another one when a field is taken away. */
#define JSON_FORMAT    5

static struct {
	bool json, has_problem;
	bool has_values; /* the innermost object or array */
	unsigned int depth;
	char closing[JSON_MAX_DEPTH];
} out;

/* ---- what strangers have written ---- */

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~';
}

/* With a '?' in the place of each byte that a terminal may obey. */
static void put_plain(FILE *file, const char *text)
{
	for (; *text; text++)
		fputc(is_plain(*text) ? *text : '?', file);
}

/* Bytes that are not ASCII need not be text in any encoding. */
static void quote(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if (is_plain(*text))
			putchar(*text);
		else
			printf("\\u%04x", (unsigned char)*text < 0x80 ? *text : 0xfffd);
	putchar('"');
}

/* ---- JSON ---- */

/* What comes before a value: comma, line, key. Whether there is to be a value: false in text. */
static bool begin(const char *key)
{
	if (!out.json)
		return false;
	if (out.depth)
		printf("%s\n%*s", out.has_values ? "," : "", (int)out.depth * 2, "");
	out.has_values = true;
	if (!key)
		return true;
	quote(key);
	fputs(": ", stdout);
	return true;
}

static void open_level(const char *key, char opening, char closing)
{
	if (!begin(key))
		return;
	putchar(opening);
	out.closing[out.depth++] = closing;
	out.has_values = false;
	if (out.depth == 1)
		print_number("format", NULL, JSON_FORMAT);
}

void print_object(const char *key)
{
	open_level(key, '{', '}');
}

void print_array(const char *key)
{
	open_level(key, '[', ']');
}

void print_end(void)
{
	if (!out.json)
		return;
	out.depth--;
	if (out.has_values)
		printf("\n%*s", (int)out.depth * 2, "");
	putchar(out.closing[out.depth]);
	out.has_values = true;
	if (!out.depth)
		putchar('\n');
}

void print_bool(const char *key, bool value)
{
	if (begin(key))
		fputs(value ? "true" : "false", stdout);
}

/* ---- both ---- */

void print_text(const char *fmt, ...)
{
	va_list args;

	if (out.json)
		return;
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
}

void print_number(const char *key, const char *before, uint64_t number)
{
	if (begin(key))
		printf("%" PRIu64, number);
	else if (before)
		printf("%s%" PRIu64, before, number);
}

void print_bytes(const char *key, const char *before, uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	if (out.json || !before) {
		print_number(key, before, bytes);
		return;
	}
	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	if (value == (double)(uint64_t)value)
		printf("%s%.0f %s", before, value, units[unit]);
	else
		printf("%s%.*f %s", before, value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
}

void print_id(const char *key, const char *before, uint64_t id)
{
	if (out.json)
		print_number(key, before, id);
	else if (before)
		printf("%s%#" PRIx64, before, id);
}

void print_address(const char *key, const char *before, uint64_t address)
{
	if (begin(key))
		printf("\"%#" PRIx64 "\"", address);
	else if (before)
		printf("%s%#" PRIx64, before, address);
}

void print_string(const char *key, const char *before, const char *text)
{
	bool is_there = text && text[0];

	if (begin(key)) {
		if (is_there)
			quote(text);
		else
			fputs("null", stdout);
	} else if (before && is_there) {
		fputs(before, stdout);
		put_plain(stdout, text);
	}
}

void print_point(enum point_state state, const char *name, const char *advice, const char *fmt, ...)
{
	static const char *const states[] = { "ok", "warning", "problem" };
	static const char *const columns[] = { "       ", "  ", "  " };
	char text[4096];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	out.has_problem |= state == POINT_PROBLEM;
	print_object(NULL);
	print_string("state", "", states[state]);
	print_string("name", columns[state], name);
	print_string("text", ": ", text);
	print_string("advice", ". ", state == POINT_OK ? NULL : advice);
	print_text("\n");
	print_end();
}

void print_failure(const char *name, const char *advice, int err)
{
	print_point(POINT_PROBLEM, name, advice, "%s", fail_text()[0] ? fail_text() : strerror(-err));
	fail_clear();
}

bool print_has_problem(void)
{
	return out.has_problem;
}

/* ---- errors ---- */

/* An error is the text of a failure, whoever wrote it: the one who ends the call shows it. */
static void take_line(unsigned int level, const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	const char *text;
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	line[strcspn(line, "\n")] = '\0';
	/* The plugin's lines begin with its name, which here would say nothing. */
	text = strstr(line, ": ");
	text = text ? text + strlen(": ") : line;
	if (level == PLUGIN_LOG_ERROR)
		(fail)(-EIO, "%s", text);
	else if (level == PLUGIN_LOG_WARN)
		complain("%s", text);
}

void print_start(bool json)
{
	plugin_log_to(take_line);
	fail_clear();
	memset(&out, 0, sizeof(out));
	out.json = json;
}

int complain(const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fputs("amdgpu-checkpoint: ", stderr);
	put_plain(stderr, line);
	fputc('\n', stderr);
	return TOOL_FAIL;
}

int complain_failure(void)
{
	if (fail_text()[0])
		complain("%s", fail_text());
	fail_clear();
	return TOOL_FAIL;
}
