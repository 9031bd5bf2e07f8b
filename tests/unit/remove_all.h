/* SPDX-License-Identifier: GPL-2.0-only */
/* Removes what a test has made, without a shell: in a fault loop, that would take longer than what is tested. */
#ifndef UNIT_REMOVE_ALL_H
#define UNIT_REMOVE_ALL_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

/* A directory with all that is in it; nothing where it is not there. 0, or -1 with errno. */
static inline int remove_all(const char *path)
{
	return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT ? -1 : 0;
}

#endif
