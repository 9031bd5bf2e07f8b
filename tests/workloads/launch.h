/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workloads in the background: a session of their own, without terminal and inherited
 * descriptors, and a launcher that ends when they work.
 */
#ifndef WORKLOADS_LAUNCH_H
#define WORKLOADS_LAUNCH_H

/*
 * Goes on in a new process, whose stderr is @state_path.log; 0 there, with the descriptor for
 * launch_ready() in *ret_ready_fd, or -errno, reported. The calling process does not return: it
 * waits for the word of @nr_processes processes, repeats their messages when one fails, and
 * exits with 0 or 1.
 */
int launch_background(const char *state_path, unsigned int nr_processes, int *ret_ready_fd);

/* Says that this process works, and closes *@ready_fd; -1: there is no launcher. */
void launch_ready(int *ready_fd);

#endif
