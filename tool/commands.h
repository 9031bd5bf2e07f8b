/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands. Each returns its exit status, TOOL_GOOD, TOOL_BAD or TOOL_FAIL, the last after a line. */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tool/print.h"

struct arguments {
	const char *path;    /* directory or archive of images, or a pid; NULL: none was given */
	const char *images_dir; /* where a dump would write; NULL: not said */
	const char *machine; /* directory with a copy of another machine's topology; NULL: this one's */
};

int command_show(const struct arguments *arguments);
int command_verify(const struct arguments *arguments);
int command_match(const struct arguments *arguments);
int command_doctor(const struct arguments *arguments);
int command_check(const struct arguments *arguments);
int command_resume(const struct arguments *arguments);

/* A point about the directory of images, of which a dump needs so many bytes. */
void check_images_dir(const char *directory, uint64_t needed_bytes);

/* 0 after a line. */
int parse_pid(const char *text);

#endif
