/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of verify share. */
#ifndef TOOL_VERIFY_H
#define TOOL_VERIFY_H

#include "tool/images.h"

struct verify {
	struct images images;
	struct contents *read;	/* for each file of images: what was read of it; {} for most */
	bool has_checksums;	/* the images are of a plugin that gives each one */
	bool knows_files;	/* criu's list of files was there */
	size_t nr_images, nr_image_checksums;
	size_t nr_buffers, nr_checksums, nr_without; /* with contents; compared; that have none */
	uint64_t content_bytes;			     /* that were read */
	size_t nr_damaged, nr_unread;
};

/* @err: -EBADMSG, damaged; any other: it could not be looked at. @bo: the buffer that is wrong; NULL: none. */
void problem(struct verify *v, const char *file, const struct bo *bo, int err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
#define damaged(v, file, ...) problem(v, file, NULL, -EBADMSG, __VA_ARGS__)

/* What images say of each other, and what criu's list of files says of them. */
void verify_set(struct verify *v);

#endif
