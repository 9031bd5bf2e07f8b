/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of image/ share, and protobuf's types. */
#ifndef IMAGE_INTERNAL_H
#define IMAGE_INTERNAL_H

#include <stddef.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "criu-amdgpu.pb-c.h"

/* For unpacking: names the image. */
#define bad_image(name, fmt, ...) fail(-EBADMSG, "image %s: " fmt, name, ##__VA_ARGS__)

/* All messages that are made for one image. {} to begin with. */
struct packing {
	void **blocks;
	size_t nr_blocks;
};

/* Frees them. */
void packing_done(struct packing *packing);
#define _cleanup_packing_ _cleanup_(packing_done)

/* An array of pointers to @count new messages, as protobuf-c wants repeated ones. NULL when memory is short. */
void *packing_add(struct packing *packing, size_t count, const ProtobufCMessageDescriptor *type);

/* The messages of all nodes, which borrow from these. NULL when memory is short. */
KfdDeviceEntry **nodes_pack(struct packing *packing, const struct topology *nodes);

/* A topology that the caller frees; or -EBADMSG or -ENOMEM. */
int nodes_unpack(const char *name, KfdDeviceEntry **entries, size_t count, struct topology **ret);

/* ---- shared buffers and objects of render nodes (image/objects.c) ---- */

/* Puts @share into a BO's message, which borrows the metadata. */
void share_pack(struct kfd_share *share, KfdBoEntry *entry);

/* Takes the shares of all BOs of a message, whose state has its BOs, and checks them. 0, -EBADMSG or -ENOMEM. */
int shares_unpack(const char *name, const CriuKfd *msg, struct kfd_state *state);

/* Puts @objects into a message. 0 or -ENOMEM. */
int objects_pack(struct packing *packing, const struct render_objects *objects, CriuRenderNode *msg);

/* The reverse; errors as above. */
int objects_unpack(const char *name, const CriuRenderNode *msg, struct render_objects *ret);

/* ---- files with one message each (image/file.c) ---- */

/* What is in a file behind its length. {} to begin with. */
struct image_payload {
	char name[IMAGE_NAME_MAX]; /* of the file */
	uint8_t *data;
	size_t size;
};

void image_payload_done(struct image_payload *payload);
#define _cleanup_payload_ _cleanup_(image_payload_done)

/* A new file with the payload. 0 or -errno. */
int image_file_write(enum image_kind kind, int id, struct image_payload *payload);

/* 0; -ENOENT when there is none, no message; or another -errno. */
int image_file_read(enum image_kind kind, int id, struct image_payload *ret);

/* Packs a message and sets crc32c, its last field, whatever its value; heap memory of the caller. 0 or -ENOMEM. */
int image_message_pack(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_size);

/*
 * *@ret, a pointer to a message of @type, is the caller's. The memory for it is bounded by its size. Its CRC-32C, and
 * the number of criu's file that it was written for, in @id_field, are compared where it has them: messages of other
 * writers do not. 0; or -EBADMSG, -EFBIG or -ENOMEM; -EOPNOTSUPP where a later version of this plugin has saved more.
 */
int image_message_unpack(const char *name, const ProtobufCMessageDescriptor *type, const char *id_field,
			 const uint8_t *data, size_t size, void *ret);

/* The message at *@message; NULL there is accepted. */
void image_message_free(void *message);
#define _cleanup_message_ _cleanup_(image_message_free)

#endif
