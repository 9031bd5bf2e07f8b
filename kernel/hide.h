/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hides GPUs from the calling task for a moment, so that the kernel makes a KFD process
 * without them: it asks the device cgroup only when a task first opens /dev/kfd.
 */
#ifndef KERNEL_HIDE_H
#define KERNEL_HIDE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Told of each temporary cgroup, for the time when its task is killed or cannot remove it. made() comes before the
 * cgroup, @dir and @name are borrowed; 0 or -errno, no message. removed() says that it is gone.
 */
struct hide_keeper {
	int (*made)(void *arg, int dir, const char *name);
	void (*removed)(void *arg);
	void *arg;
};

struct hide {
	const struct hide_keeper *keeper;
	int cgroup;    /* directory of the task's own cgroup */
	char name[32]; /* of the one below it in which the task is meanwhile */
};

/*
 * Puts the calling process into a cgroup of its own in which it may use only these render nodes; by cgroup v2, or else
 * by the controller "devices" of v1. 0, then hide_end() has to follow; -errno: nothing has changed. @keeper: NULL, or
 * borrowed until hide_end().
 */
int hide_begin(const uint32_t *minors, size_t nr_minors, const struct hide_keeper *keeper, struct hide *hide);

/* Puts it back and removes the cgroup. 0; -errno when it cannot be put back. */
int hide_end(struct hide *hide);

#endif
