// SPDX-License-Identifier: GPL-2.0-only
/* Text, JSON (RFC 8259) and lines on standard error. */
#include <inttypes.h>
#include <stdarg.h>

#include "amdgpu_plugin_util.h"
#include "tool/print.h"

#define JSON_MAX_DEPTH 16
/* Another one when a field is taken away. */
#define JSON_FORMAT    4

static struct {
	bool json, has_problem;
	unsigned int depth;
	char closing[JSON_MAX_DEPTH];
	bool has_values[JSON_MAX_DEPTH];
} out;

/* ---- JSON ---- */

/* Length of the UTF-8 sequence that @text begins with, 0 when it begins with none (RFC 3629). */
static unsigned int utf8_length(const unsigned char *text)
{
	unsigned int length = text[0] < 0x80   ? 1
			      : text[0] < 0xc2 ? 0
			      : text[0] < 0xe0 ? 2
			      : text[0] < 0xf0 ? 3
			      : text[0] < 0xf5 ? 4
					       : 0;

	for (unsigned int i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

static void quote(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putchar('"');
	while (*p) {
		unsigned int length = utf8_length(p);

		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < ' ' || *p == 0x7f)
			printf("\\u%04x", *p);
		else if (length)
			fwrite(p, 1, length, stdout);
		else
			fputs("\\ufffd", stdout);
		p += length ? length : 1;
	}
	putchar('"');
}

/* What comes before a value: comma, line, key. Whether there is to be a value: false in text. */
static bool begin(const char *key)
{
	if (!out.json)
		return false;
	if (out.depth) {
		printf("%s\n%*s", out.has_values[out.depth - 1] ? "," : "", (int)out.depth * 2, "");
		out.has_values[out.depth - 1] = true;
	}
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
	out.closing[out.depth] = closing;
	out.has_values[out.depth++] = false;
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
	if (out.has_values[out.depth])
		printf("\n%*s", (int)out.depth * 2, "");
	putchar(out.closing[out.depth]);
	if (!out.depth)
		putchar('\n');
}

void print_bool(const char *key, bool value)
{
	if (begin(key))
		fputs(value ? "true" : "false", stdout);
}

/* ---- both ---- */

/* Puts a '?' into the place of each byte that a terminal may obey. */
static void make_safe(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

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
	_cleanup_free_ char *copy = NULL;

	if (!text || !text[0]) {
		if (begin(key))
			fputs("null", stdout);
	} else if (begin(key)) {
		quote(text);
	} else if (before) {
		copy = strdup(text);
		if (copy)
			make_safe(copy);
		printf("%s%s", before, copy ? copy : "?");
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
	print_string("advice", ". ", advice);
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

/* The plugin's lines begin with its name, which here would say nothing. */
static const char *without_prefix(const char *line)
{
	static const char *const prefixes[] = { PLUGIN_ERROR_PREFIX, "amdgpu_plugin: " };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(line, prefixes[i], strlen(prefixes[i])))
			return line + strlen(prefixes[i]);
	return line;
}

/* An error is the text of a failure, whoever wrote it: the one who ends the call shows it. */
static void take_line(unsigned int level, const char *fmt, ...)
{
	char line[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	line[strcspn(line, "\n")] = '\0';
	if (level == PLUGIN_LOG_ERROR)
		(fail)(-EIO, "%s", without_prefix(line));
	else if (level == PLUGIN_LOG_WARN)
		complain("%s", without_prefix(line));
}

void print_start(bool json)
{
	plugin_log_to(take_line);
	out.json = json;
	out.has_problem = false;
	fail_clear();
	out.depth = 0;
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

int complain_failure(void)
{
	if (fail_text()[0])
		complain("%s", fail_text());
	fail_clear();
	return TOOL_FAIL;
}
