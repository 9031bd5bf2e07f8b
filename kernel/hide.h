/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hides GPUs from the calling task for a moment, so that the kernel makes a KFD process
 * without them: it asks the device cgroup only when a task first opens /dev/kfd.
 */
#ifndef KERNEL_HIDE_H
#define KERNEL_HIDE_H

#include <stddef.h>
#include <stdint.h>

struct hide {
	int cgroup;	  /* directory of the task's own cgroup */
	char name[32];	  /* of the one below it in which the task is meanwhile */
	char reason[200]; /* why it cannot be done, for people */
};

/*
 * Puts the calling process into a cgroup of its own in which it may use these render nodes
 * only; by cgroup v2, or else by the controller "devices" of v1. 0, then hide_end() has to
 * follow; -errno without a message, *hide says why and nothing has changed.
 */
int hide_begin(const uint32_t *minors, size_t nr_minors, struct hide *hide);

/* Puts it back and removes the cgroup. 0; -errno after an error line when it cannot be put back. */
int hide_end(struct hide *hide);

#endif
