/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared buffers and objects of render nodes in the images: between structs and messages. */
#ifndef IMAGE_OBJECTS_H
#define IMAGE_OBJECTS_H

#include "image/image.h"
#include "image/internal.h"

/* Puts @share into a BO's message, which borrows the metadata. */
void share_pack(struct kfd_share *share, KfdBoEntry *entry);

/*
 * Takes the shares of all BOs of a message, whose state has its BOs, and checks them. @nodes: those of the image. 0,
 * -EBADMSG or -ENOMEM.
 */
int shares_unpack(const char *name, const CriuKfd *msg, struct kfd_state *state);

/* Puts @objects into a message; the caller ends that by objects_pack_done() in any case. 0 or -ENOMEM. */
int objects_pack(const struct render_objects *objects, CriuRenderNode *msg);
void objects_pack_done(CriuRenderNode *msg);

/* The reverse; errors as above. */
int objects_unpack(const char *name, const CriuRenderNode *msg, struct render_objects *ret);

#endif
