/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes JSON, one value on each line. Strings may hold anything: what is not UTF-8 becomes U+FFFD. Keys are the
 * program's own; NULL for the elements of an array and for the outermost value.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16

struct json {
	FILE *out; /* borrowed */
	unsigned int depth;
	char closing[JSON_MAX_DEPTH];
	bool has_values[JSON_MAX_DEPTH];
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Ends the innermost object or array. */
void json_end(struct json *json);

/* @text NULL: null */
void json_string(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, uint64_t number);
/* As a string, "0x...": readers of JSON round numbers above 2^53. */
void json_hex(struct json *json, const char *key, uint64_t number);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
