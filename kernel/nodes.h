/* SPDX-License-Identifier: GPL-2.0-only */
/* Device nodes for a restored container, whose /dev comes from the dump and has those of other GPUs. */
#ifndef KERNEL_NODES_H
#define KERNEL_NODES_H

#include <stdint.h>

/* The file systems that are mounted where criu's main process is. */
struct mounted;

/* To be called there, before tasks are made. Freed by mounted_free(). NULL where they cannot be read. */
struct mounted *mounted_read(void);
void mounted_free(struct mounted *mounted);

/*
 * Makes the node of a render minor in the calling task's /dev/dri, with owner and mode of the node of @model, if that
 * is there. Only in a tmpfs that is not among @mounted and that no symbolic link leads to: all others may be somebody
 * else's. The device cgroup decides whether there may be a node. 0 where it is there now or is not ours to make,
 * otherwise -errno, no message. @mounted: borrowed; NULL: nothing is made.
 */
int nodes_make(const struct mounted *mounted, uint32_t minor, uint32_t model);

#endif
