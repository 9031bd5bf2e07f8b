/* SPDX-License-Identifier: GPL-2.0-only */
/* File systems that are mounted nowhere: reached by one fd, gone with it. */
#ifndef KERNEL_MOUNT_H
#define KERNEL_MOUNT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes a file system of this type that no path of the mount namespace leads to. @flags:
 * its options without a value, separated by commas; NULL or "": none. An fd of its root
 * directory that the caller closes, or -errno, no message.
 */
int mount_private(const char *type, const char *flags);

/* A task's own place, for mount_go_home(). */
struct mount_home {
	int ns; /* mount namespace; -1: the task is there */
	int root, cwd;
};

/*
 * Takes the calling task to a root directory that has nothing but sysfs at /sys and the names of these render nodes in
 * /dev/dri, if it lacks any of them: libdrm takes no file for a render node without. The task must have one thread.
 * 0, then mount_go_home() has to follow; -errno, no message, and it has to follow as well.
 */
int mount_show_render_nodes(const uint32_t *minors, size_t nr_minors, struct mount_home *home);

/* Accepts a task that is at home. 0, or -errno, no message: the task is in the wrong place then. */
int mount_go_home(struct mount_home *home);

#endif
