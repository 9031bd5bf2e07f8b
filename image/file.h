/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of the image directory with one message each. */
#ifndef IMAGE_FILE_H
#define IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* A new file with the payload. 0, or -errno after an error line. */
int write_image(const char *name, const uint8_t *payload, size_t size);

/* The payload of a file, heap memory of the caller. -ENOENT without a message when there is none; else as above. */
int read_image(const char *name, uint8_t **ret, size_t *ret_size);

/* Packs a message and sets crc32c, its last field, whatever its value; heap memory of the caller. 0 or -ENOMEM. */
int pack_message(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_size);

/*
 * A message, freed by free_message(). The memory for it is bounded by its size. NULL with -EBADMSG, -EFBIG or
 * -ENOMEM after an error line.
 */
void *unpack_message(const char *name, const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size,
		     int *ret_err);
/* Accepts NULL. */
void free_message(void *message);

/* Compares that field of a packed message, if it has it. 0, or -EBADMSG after an error line. */
int check_crc(const char *name, bool has_crc, uint32_t saved, const uint8_t *data, size_t size);

/* Compares the id of criu's file that an image was written for, if the image has it, with that in @name. The same. */
int check_file(const char *name, bool has_id, uint32_t saved);

#endif
