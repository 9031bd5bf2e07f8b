/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of the image directory with one message each. */
#ifndef IMAGE_FILE_H
#define IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "image/image.h"

/* A new file with the payload. 0 or -errno. */
int image_file_write(enum image_kind kind, int id, const uint8_t *payload, size_t size);

/*
 * The payload of a file, heap memory of the caller; @name receives the file's name. -ENOENT when there
 * is none, no message; or another -errno.
 */
int image_file_read(enum image_kind kind, int id, char name[IMAGE_NAME_MAX], uint8_t **ret, size_t *ret_size);

/* Packs a message and sets crc32c, its last field, whatever its value; heap memory of the caller. 0 or -ENOMEM. */
int image_message_pack(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_size);

/*
 * *@ret, a pointer to a message of @type, is the caller's. The memory for it is bounded by its size. 0; or -EBADMSG,
 * -EFBIG or -ENOMEM.
 */
int image_message_unpack(const char *name, const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size,
			 void *ret);

/* The message at *@message; NULL there is accepted. */
void image_message_free(void *message);
#define _cleanup_message_ _cleanup_(image_message_free)

/*
 * Compares the CRC-32C of a packed message, and the id of criu's file that it was written for with that in @name. NULL:
 * the message does not have it, as those of other writers. 0 or -EBADMSG.
 */
int image_check_frame(const char *name, const uint32_t *crc, const uint32_t *id, const uint8_t *data, size_t size);

#endif
