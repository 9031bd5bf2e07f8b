/* SPDX-License-Identifier: GPL-2.0-only */
/* The buffers that tasks export, by their numbers in the images. */
#ifndef SHARE_TABLE_H
#define SHARE_TABLE_H

#include <stdatomic.h>

#include "host/host.h"
#include "share/share.h"

struct share_table {
	atomic_uint nr_sharers;	  /* 0: nobody has begun */
	atomic_uint nr_exported; /* tasks that have exported all that they own */
	atomic_uint nr_attached;  /* tasks that have everything */
	atomic_uint nr_files, nr_filled; /* of render nodes: that get objects, and that have them */
	atomic_int failed; /* pid, in its own namespace, of a task that cannot be restored */
	atomic_int place[IMAGE_MAX_NUMBER + 1]; /* of its dma-buf */
};

/* Buffers that a task is about to export; {} to begin with. */
struct share_batch {
	size_t nr;
	uint32_t buffers[BUNDLE_MAX];
	int dmabufs[BUNDLE_MAX]; /* borrowed */
};

/* Adds a buffer, and exports all when there are many. 0, or -errno after fail(). */
int share_batch_add(struct share_batch *batch, struct share_table *table, uint32_t buffer, int dmabuf_fd);

/* Exports those that were added since. Likewise. */
int share_batch_export(struct share_batch *batch, struct share_table *table);

/*
 * A dma-buf fd of a buffer, which the caller owns; waits for its owner, as long as that one may export it. -errno after
 * fail().
 */
int share_table_get(struct share_table *table, uint32_t buffer);

/* The dma-bufs that were exported with the one that was taken last. {} to begin with, and after share_open_done(). */
struct share_open {
	int place; /* of the first one */
	size_t nr;
	int fds[BUNDLE_MAX];
};

/*
 * The same for many buffers one after the other, of which those that were exported together are taken together. The fd
 * is borrowed until the next call.
 */
int share_table_borrow(struct share_table *table, struct share_open *open, uint32_t buffer);
void share_open_done(struct share_open *open);

#endif
