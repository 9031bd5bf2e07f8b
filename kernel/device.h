/* SPDX-License-Identifier: GPL-2.0-only */
/* Device nodes of the KFD and of DRM: recognise them, and open them wherever the caller is. */
#ifndef KERNEL_DEVICE_H
#define KERNEL_DEVICE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Number of the device /dev/kfd; false without a KFD. Found once and remembered: a
 * restored task may see no sysfs.
 */
bool device_kfd_number(dev_t *ret);

/* Number of the render node of a minor. */
dev_t device_render_number(uint32_t minor);

/* Whether a file's status is that of /dev/kfd. */
bool device_is_kfd(const struct stat *st);

/* Whether it is that of a DRM render node, of whatever driver. */
bool device_is_render_node(const struct stat *st);

/*
 * Opens a character device; @flags as of open(2), O_RDWR for what is not a task's file.
 * @path is where it usually is; when that is absent or another device, as in a container that was made for other GPUs, a
 * private node is made for the open. The device cgroup decides in either case. An fd, or
 * -errno, no message.
 */
int device_open(const char *path, dev_t number, int flags);

/* The flags of an open file that are restored: how it may be accessed, and what fcntl(2) can change. */
#define DEVICE_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK)
int device_flags(int fd); /* or -errno */

/* Gives a file those flags that can be changed. 0 or -errno. */
int device_set_status(int fd, int flags);

#endif
