/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of the image directory with one message each. */
#ifndef IMAGE_FILE_H
#define IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "image/image.h"

/* A new file with the payload. 0, or -errno after an error line. */
int write_image(enum image_kind kind, int id, const uint8_t *payload, size_t size);

/*
 * The payload of a file, heap memory of the caller; @name receives the file's name. -ENOENT without a message when there
 * is none; else as above.
 */
int read_image(enum image_kind kind, int id, char name[IMAGE_NAME_MAX], uint8_t **ret, size_t *ret_size);

/* Packs a message and sets crc32c, its last field, whatever its value; heap memory of the caller. 0 or -ENOMEM. */
int pack_message(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_size);

/*
 * *@ret, a pointer to a message of @type, is the caller's. The memory for it is bounded by its size. 0; or -EBADMSG,
 * -EFBIG or -ENOMEM after an error line.
 */
int unpack_message(const char *name, const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size, void *ret);

/* The message at *@message; NULL there is accepted. */
void free_message(void *message);
#define _cleanup_message_ _cleanup_(free_message)

/*
 * Compares the CRC-32C of a packed message, and the id of criu's file that it was written for with that in @name. NULL:
 * the message does not have it, as those of other writers. 0, or -EBADMSG after an error line.
 */
int check_frame(const char *name, const uint32_t *crc, const uint32_t *id, const uint8_t *data, size_t size);

#endif
