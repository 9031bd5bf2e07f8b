/* SPDX-License-Identifier: GPL-2.0-only */
/* What people are shown: lines on standard error, colours, and texts of images, which may hold anything. */
#ifndef TOOL_PRINT_H
#define TOOL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. */
#define TOOL_GOOD 0
#define TOOL_BAD  1 /* damaged, does not fit, something is in the way */
#define TOOL_FAIL 2 /* cannot be told; wrong usage */

/* To be called first: errors and warnings of the plugin's code go to standard error. */
void print_start(void);

/* One line "amdgpu-image: ..." on standard error. Returns TOOL_FAIL. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The plugin's error lines between the two calls, without prefix and line end: the first of them, "" for none. */
#define CAUGHT_MAX 1024
void catch_begin(char caught[CAUGHT_MAX]);
void catch_end(void);

enum colour { PLAIN, BOLD, RED, GREEN, YELLOW };

/* The escape sequence of a colour; "" unless standard output is a terminal and NO_COLOR is not set. */
const char *colour(enum colour colour);

/* Puts a '?' into the place of each byte that is no printable ASCII character: a terminal may obey others. */
void make_safe(char *text);

/* The same of a copy, cut to SAFE_MAX: one of a few static buffers. */
#define SAFE_MAX 1024
const char *safe(const char *text);

/* "1.5 GiB"; exact below 1 KiB, else three digits. One of a few static buffers. */
const char *size_text(uint64_t bytes);

#endif
