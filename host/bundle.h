/* SPDX-License-Identifier: GPL-2.0-only */
/* Many open files as one. */
#ifndef HOST_BUNDLE_H
#define HOST_BUNDLE_H

#include <stddef.h>

#define BUNDLE_MAX 32u

/* A file that holds @nr files, BUNDLE_MAX at most, which stay the caller's. The caller's fd, or -errno, no message. */
int bundle_new(const int *fds, size_t nr);

/* All files in it, which the caller owns. 0 or -errno, no message. */
int bundle_get_all(int bundle, int fds[BUNDLE_MAX], size_t *ret_nr);

/* The file at @index of a bundle: the caller's fd, or -errno, no message. Many may call it at the same time. */
int bundle_get(int bundle, size_t index);

/* Closes what it holds, for all who have it. 0 or -errno, no message. */
int bundle_empty(int bundle);

#endif
