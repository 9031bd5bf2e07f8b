/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Some data and a file descriptor from process to process, through a socket of messages.
 */
#ifndef WORKLOADS_FDPASS_H
#define WORKLOADS_FDPASS_H

#include <stddef.h>

/* Sends a copy of @fd, -1: of none, with @data. -errno, reported. */
int fdpass_send(int socket, const void *data, size_t bytes, int fd);
/* Waits for that. *ret_fd is the caller's to close; -1: none came. -EPIPE at the end; others are reported. */
int fdpass_receive(int socket, void *data, size_t bytes, int *ret_fd);

#endif
