/* SPDX-License-Identifier: GPL-2.0-only */
/* Who shares which buffer: what all images say of it, put together. */
#ifndef TOOL_SHARING_H
#define TOOL_SHARING_H

#include "tool/images.h"

/* What a file has of a buffer, in the order in which a buffer's are listed. */
enum sharing_role {
	SHARING_OWNER,	  /* has its contents and makes it at restore */
	SHARING_IMPORTER, /* a process that takes it from the owner */
	SHARING_HANDLE,	  /* a GEM handle in a file of a render node */
	SHARING_DMABUF,	  /* an open dma-buf */
	SHARING_NR_ROLES,
};

struct sharing_ref {
	uint32_t buffer;
	enum sharing_role role;
	const struct image_file *file;
	size_t bo; /* of an owner or importer: which of the process' buffers */
};

struct sharing {
	struct sharing_ref *refs; /* by buffer, role and file */
	size_t nr;
};

/* A buffer that has a number. */
struct shared_buffer {
	uint32_t number;
	const struct sharing_ref *refs;
	size_t nr[SHARING_NR_ROLES]; /* of refs, one role after the other */
};

/* Borrows from @images. 0 or -ENOMEM, without a message. */
int sharing_init(struct sharing *sharing, const struct images *images);
void sharing_done(struct sharing *sharing);

/* The buffer at *at, which begins with 0 and moves on; false: there is no further one. */
bool sharing_next(const struct sharing *sharing, size_t *at, struct shared_buffer *ret);

/* The buffer itself: as its owner has it, NULL if none has. */
const struct bo *sharing_bo(const struct shared_buffer *buffer);

/* Whether its owner has it by a render node, not by the KFD. */
bool sharing_is_gem(const struct shared_buffer *buffer);

#endif
