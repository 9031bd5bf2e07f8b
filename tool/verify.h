/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of verify share. */
#ifndef TOOL_VERIFY_H
#define TOOL_VERIFY_H

#include "content/content.h"
#include "tool/images.h"
#include "tool/json.h"

/* Where something is wrong. */
struct problem_place {
	const char *file;
	const struct kfd_criu_bo_bucket *bo; /* NULL: no buffer in particular */
	size_t index;			     /* of the buffer in its process */
	uint64_t from, to;		     /* bytes of the file; both 0: all of it */
};

/* The buffers of a GPU with contents, in the order of the file. */
struct contents {
	struct content_bo *bos;
	size_t nr;
	uint64_t *starts; /* content_starts() */
	int err;	  /* of reading: -errno */
	uint64_t at;	  /* where */
};

struct verify {
	const char *path;
	struct images images;
	struct contents *read; /* of an archive: for each file of images, what was read of it; empty for most */
	bool json;
	struct json out;
	bool progress;			  /* is shown */
	unsigned int percent;		  /* shown last */
	uint64_t bytes_total, bytes_done; /* of contents to read; before this file */
	bool has_checksums;		  /* they were written by a plugin that gives each image one */
	bool knows_files;		  /* criu's list of files was there */
	size_t nr_images, nr_image_checksums;
	size_t nr_buffers, nr_checksums, nr_without; /* with contents; compared; that have none */
	size_t nr_damaged, nr_unread;
};

/* @err: -EBADMSG, damaged; any other: it could not be looked at. */
void problem(struct verify *v, const struct problem_place *place, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* What images say of each other, and what criu's list of files says of them. */
void check_set(struct verify *v);

#endif
