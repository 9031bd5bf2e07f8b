// SPDX-License-Identifier: GPL-2.0-only
/* Text, JSON (RFC 8259) and lines on standard error. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/eventfd.h>

#include "amdgpu_plugin_util.h"
#include "tool/print.h"

#define JSON_MAX_DEPTH 16
/* Another one when a field is taken away. */
#define JSON_FORMAT    6

static struct {
	bool json, has_problem;
	bool has_values; /* the innermost object or array */
	unsigned int depth;
	char closing[JSON_MAX_DEPTH];
	char error[PLUGIN_LOG_LINE_MAX]; /* the first complaint */
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

/* The character of UTF-8 at @text, and how many bytes it has; 1 and U+FFFD for what is none. */
static size_t take_character(const uint8_t *text, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2, i;
	uint32_t character = text[0] & (0x7f >> len);

	for (i = 1; i < len && (text[i] & 0xc0) == 0x80; i++)
		character = character << 6 | (text[i] & 0x3f);
	*ret = 0xfffd;
	if (text[0] < 0xc0 || text[0] > 0xf4 || i < len || character < least[len] || character > 0x10ffff ||
	    character >> 11 == 0x1b)
		return 1;
	*ret = character;
	return len;
}

/* ASCII alone comes out: a terminal obeys other characters, too. Bytes that are not of UTF-8 are lost. */
static void quote(const char *text)
{
	uint32_t character;

	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\') {
			printf("\\%c", *text);
		} else if (is_plain(*text)) {
			putchar(*text);
		} else if ((uint8_t)*text < 0x80) {
			printf("\\u%04x", *text);
		} else {
			text += take_character((const uint8_t *)text, &character) - 1;
			if (character > 0xffff)
				printf("\\u%04x", 0xd7c0 + (character >> 10));
			printf("\\u%04x", character > 0xffff ? 0xdc00 + (character & 0x3ff) : character);
		}
	putchar('"');
}

/* ---- JSON ---- */

/* What comes before a value: comma, line, key. Whether there is to be a value: false in text. */
static bool begin_value(const char *key)
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
	if (!begin_value(key))
		return;
	putchar(opening);
	out.closing[out.depth++] = closing;
	out.has_values = false;
	if (out.depth == 1)
		print_number("format", NULL, JSON_FORMAT);
}

bool print_is_json(void)
{
	return out.json;
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

void print_null(const char *key)
{
	if (begin_value(key))
		fputs("null", stdout);
}

void print_bool(const char *key, bool value)
{
	if (begin_value(key))
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
	if (begin_value(key))
		printf("%" PRIu64, number);
	else if (before)
		printf("%s%" PRIu64, before, number);
}

static const char *size_text(uint64_t bytes, char text[32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	if (value == (double)(uint64_t)value)
		snprintf(text, 32, "%.0f %s", value, units[unit]);
	else
		snprintf(text, 32, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
	return text;
}

void print_bytes(const char *key, const char *before, uint64_t bytes)
{
	char text[32];

	if (out.json || !before)
		print_number(key, before, bytes);
	else
		print_text("%s%s", before, size_text(bytes, text));
}

void print_id(const char *key, const char *before, uint64_t id)
{
	if (out.json)
		print_number(key, before, id);
	else
		print_address(key, before, id);
}

void print_address(const char *key, const char *before, uint64_t address)
{
	if (begin_value(key))
		printf("\"%#" PRIx64 "\"", address);
	else if (before)
		printf("%s%#" PRIx64, before, address);
}

void print_string(const char *key, const char *before, const char *text)
{
	bool is_there = text && text[0];

	if (begin_value(key)) {
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

static void say(const char *text)
{
	fputs("amdgpu-checkpoint: ", stderr);
	put_plain(stderr, text);
	fputc('\n', stderr);
}

/* An error is the text of a failure, whoever wrote it: the one who ends the call shows it. */
static void take_line(unsigned int level, const char *fmt, ...)
{
	char buffer[PLUGIN_LOG_LINE_MAX];
	const char *text;
	va_list args;

	va_start(args, fmt);
	vsnprintf(buffer, sizeof(buffer), fmt, args);
	va_end(args);
	buffer[strcspn(buffer, "\n")] = '\0';
	/* The plugin's lines begin with its name, which here would say nothing. */
	text = strstr(buffer, ": ");
	text = text ? text + strlen(": ") : buffer;
	if (level == PLUGIN_LOG_ERROR)
		(fail)(-EIO, "%s", text);
	else if (level == PLUGIN_LOG_WARN)
		say(text);
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
	char text[PLUGIN_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!out.error[0])
		memcpy(out.error, text, sizeof(text));
	say(text);
	return TOOL_FAIL;
}

int complain_failure(void)
{
	if (fail_text()[0])
		complain("%s", fail_text());
	fail_clear();
	return TOOL_FAIL;
}

int print_finish(int status)
{
	if (out.depth) {
		print_string("error", NULL, out.error);
		if (status == TOOL_FAIL)
			print_null("good");
		else
			print_bool("good", status == TOOL_GOOD);
		print_end();
	}
	/* A full disk or a closed pipe must not look like an answer. */
	if (fflush(stdout) || ferror(stdout))
		return complain("cannot write: %s", strerror(errno));
	return status;
}

/* ---- progress ---- */

struct progress_line {
	uint64_t total;
	uint64_t (*done)(void *arg);
	void *arg;
	int end; /* an eventfd; readable: end */
	pthread_t thread;
};

/* The next line overwrites it. */
static void *show_progress(void *arg)
{
	struct progress_line *progress = arg;
	struct pollfd end = { .fd = progress->end, .events = POLLIN };
	char done[32], total[32];

	while (!poll(&end, 1, 1000))
		fprintf(stderr, "%s of %s read \r", size_text(progress->done(progress->arg), done),
			size_text(progress->total, total));
	fputs("\033[K", stderr);
	return NULL;
}

struct progress_line *progress_start(uint64_t total, uint64_t (*done)(void *arg), void *arg)
{
	struct progress_line *progress = isatty(STDERR_FILENO) ? malloc(sizeof(*progress)) : NULL;

	if (!progress)
		return NULL;
	*progress = (struct progress_line){ total, done, arg, eventfd(0, EFD_CLOEXEC), 0 };
	if (progress->end >= 0 && !pthread_create(&progress->thread, NULL, show_progress, progress))
		return progress;
	cleanup_close(&progress->end);
	free(progress);
	return NULL;
}

void progress_stop(struct progress_line **progress)
{
	if (!*progress)
		return;
	eventfd_write((*progress)->end, 1);
	pthread_join((*progress)->thread, NULL);
	cleanup_close(&(*progress)->end);
	free(*progress);
}
