/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of verify share. */
#ifndef TOOL_VERIFY_H
#define TOOL_VERIFY_H

#include "content/content.h"
#include "tool/images.h"

/* ---- the contents of a GPU's buffers in a pages file (contents.c) ---- */

struct contents {
	struct content_bo *bos; /* in the order of the file; index: which buffer of the process */
	size_t nr;
	uint64_t *starts; /* content_starts() */
	size_t bo;	  /* which comes next while the file is read */
	uint64_t at;	  /* up to where it was read */
	int err;	  /* of reading: -errno */
};

/* 0; -EOVERFLOW: no file has so much; -EINVAL: an empty buffer; -ENOMEM. No message. *ret is empty after an error. */
int contents_init(struct contents *ret, const struct kfd_image *kfd, uint32_t gpu_id);
void contents_done(struct contents *contents);

/* Reads the file and sets the checksums of its buffers. contents->err says how that went; -EBADMSG is the walk's. */
int contents_read(struct contents *contents, struct member *member);

/* Some buffer has a checksum. */
bool contents_have_checksums(const struct contents *contents);

static inline uint64_t contents_end(const struct contents *contents)
{
	return contents->starts[contents->nr];
}

/* ---- all of it ---- */

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

/* A buffer in a pages file. */
struct problem_place {
	const struct bo *bo; /* NULL: no buffer in particular */
	size_t index;			     /* of the buffer in its process */
	uint64_t from, to;		     /* bytes of the file; both 0: all of it */
};

/* @err: -EBADMSG, damaged; any other: it could not be looked at. @place: NULL for the whole file. */
void problem(struct verify *v, const char *file, const struct problem_place *place, int err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
#define damaged(v, file, ...) problem(v, file, NULL, -EBADMSG, __VA_ARGS__)

/* What images say of each other, and what criu's list of files says of them. */
void verify_set(struct verify *v);

#endif
