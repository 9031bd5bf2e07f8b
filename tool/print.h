/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the command says. Each value is printed by one call, as text for people or as JSON for programs: standard output
 * is one, and so is its state. Texts of images may hold anything: of them only ASCII comes out, on a terminal only
 * what is printable.
 */
#ifndef TOOL_PRINT_H
#define TOOL_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses. */
#define TOOL_GOOD 0
#define TOOL_BAD  1 /* damaged, does not fit, something is in the way */
#define TOOL_FAIL 2 /* cannot be told; wrong usage */
#define TOOL_LITTLE 3 /* suspend: the processes are suspended, and less than half of their VRAM is free */
#define TOOL_RESET 3 /* resume: the processes run, but a reset of a GPU has cost them what had stayed there */

/* To be called first. Warnings of the plugin's code go to standard error from then on, errors to fail_text(). */
void print_start(bool json);
/* Ends the outermost object, if there is one, with what every command says. The status, or that nothing can be written. */
int print_finish(int status);

bool print_is_json(void);

/* JSON alone. @key: NULL for elements of an array and for the outermost object, which begins with its format. */
void print_object(const char *key);
void print_array(const char *key);
void print_end(void);
void print_bool(const char *key, bool value);
void print_null(const char *key);

/* Text alone. */
void print_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* In text, a value stands behind @before; where that is NULL it is printed in JSON alone. */
void print_number(const char *key, const char *before, uint64_t number);
/* "1.5 GiB" in text, exact below 1 KiB, else three digits. */
void print_bytes(const char *key, const char *before, uint64_t bytes);
/* 0x... in text. */
void print_id(const char *key, const char *before, uint64_t id);
/* 0x... also in JSON, as a string: readers round numbers above 2^53. */
void print_address(const char *key, const char *before, uint64_t address);
/* NULL or "": null, and no text, not even @before. */
void print_string(const char *key, const char *before, const char *text);

enum point_state { POINT_OK, POINT_WARNING, POINT_PROBLEM };

/* One point, on a line of its own. @advice: what to do where it is not good; NULL: nothing. */
void print_point(enum point_state state, const char *name, const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A problem: the text of fail(), which is cleared, or else @err, -errno. */
void print_failure(const char *name, const char *advice, int err);
/* Whether one of them was a problem. */
bool print_has_problem(void);

/* One line "amdgpu-checkpoint: ..." on standard error; the first one is the "error" in JSON. Returns TOOL_FAIL. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same with the text of fail(), if there is one, which is cleared. */
int complain_failure(void);

/*
 * Says once a second on standard error, where that is a terminal, how many of @total bytes are @done, from a thread of its
 * own. NULL where nothing is said.
 */
struct progress_line *progress_start(uint64_t total, uint64_t (*done)(void *arg), void *arg);
/* Accepts a pointer to NULL: for the cleanup attribute. */
void progress_stop(struct progress_line **progress);

#endif
