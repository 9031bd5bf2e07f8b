// SPDX-License-Identifier: GPL-2.0-only
/* Writes JSON (RFC 8259). */
#include <inttypes.h>
#include <string.h>

#include "tool/json.h"

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

static void write_string(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putc('"', out);
	while (*p) {
		unsigned int length = utf8_length(p);

		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < ' ' || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else if (length)
			fwrite(p, 1, length, out);
		else
			fputs("\\ufffd", out);
		p += length ? length : 1;
	}
	putc('"', out);
}

/* What comes before a value: comma, line, key. */
static void begin(struct json *json, const char *key)
{
	if (json->depth) {
		fprintf(json->out, "%s\n%*s", json->has_values[json->depth - 1] ? "," : "", (int)json->depth * 2, "");
		json->has_values[json->depth - 1] = true;
	}
	if (!key)
		return;
	write_string(json->out, key);
	fputs(": ", json->out);
}

static void open_level(struct json *json, const char *key, char opening, char closing)
{
	begin(json, key);
	putc(opening, json->out);
	json->closing[json->depth] = closing;
	json->has_values[json->depth++] = false;
}

void json_object(struct json *json, const char *key)
{
	open_level(json, key, '{', '}');
}

void json_array(struct json *json, const char *key)
{
	open_level(json, key, '[', ']');
}

void json_end(struct json *json)
{
	json->depth--;
	if (json->has_values[json->depth])
		fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	putc(json->closing[json->depth], json->out);
	if (!json->depth)
		putc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *text)
{
	begin(json, key);
	if (text)
		write_string(json->out, text);
	else
		fputs("null", json->out);
}

void json_number(struct json *json, const char *key, uint64_t number)
{
	begin(json, key);
	fprintf(json->out, "%" PRIu64, number);
}

void json_hex(struct json *json, const char *key, uint64_t number)
{
	begin(json, key);
	fprintf(json->out, "\"%#" PRIx64 "\"", number);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	json_string(json, key, NULL);
}
