/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file descriptor from process to process, through a socket of messages.
 */
#ifndef WORKLOADS_FDPASS_H
#define WORKLOADS_FDPASS_H

/* Sends a copy of @fd with the number @word. -errno, reported. */
int fdpass_send(int socket, int fd, unsigned int word);
/* Waits for one. *ret_fd is the caller's to close. -errno, reported. */
int fdpass_receive(int socket, unsigned int *ret_word, int *ret_fd);

#endif
