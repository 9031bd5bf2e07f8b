/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records and data of suspended processes below a directory of the test, and the machine's names beside them. For tests linked
 * with --wrap of open, mkdir, unlink and access; RECORD_DIR, before the header, is its name with XXXXXX.
 */
#ifndef UNIT_RECORD_DIR_H
#define UNIT_RECORD_DIR_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "suspend/internal.h"

static char directory[] = RECORD_DIR;

static const char *redirect(const char *path, char to[PATH_MAX])
{
	if (!strncmp(path, RUN_ROOT, strlen(RUN_ROOT)))
		snprintf(to, PATH_MAX, "%s%s", directory, path + strlen(RUN_ROOT));
	else if (!strcmp(path, "/etc/machine-id"))
		snprintf(to, PATH_MAX, "%s/machine-id", directory);
	else if (!strcmp(path, "/proc/sys/kernel/random/boot_id"))
		snprintf(to, PATH_MAX, "%s/boot_id", directory);
	else
		return path;
	return to;
}

#define REDIRECT(type, name, args, call)         \
	type __real_##name args;                 \
	type __wrap_##name args                  \
	{                                        \
		char to[PATH_MAX];               \
                                                 \
		return __real_##name call;       \
	}
REDIRECT(int, open, (const char *path, int flags, mode_t mode), (redirect(path, to), flags, mode))
REDIRECT(int, mkdir, (const char *path, mode_t mode), (redirect(path, to), mode))
REDIRECT(int, unlink, (const char *path), (redirect(path, to)))
REDIRECT(int, access, (const char *path, int mode), (redirect(path, to), mode))

/* Writes a file of the directory. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

#endif
