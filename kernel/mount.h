/* SPDX-License-Identifier: GPL-2.0-only */
/* File systems that are mounted nowhere: reached by one fd, gone with it. */
#ifndef KERNEL_MOUNT_H
#define KERNEL_MOUNT_H

/*
 * Makes a file system of this type that no path of the mount namespace leads to. @flags:
 * its options without a value, separated by commas; NULL or "": none. An fd of its root
 * directory that the caller closes, or -errno without a message.
 */
int mount_private(const char *type, const char *flags);

#endif
