/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of image/ share, and protobuf's types. */
#ifndef IMAGE_INTERNAL_H
#define IMAGE_INTERNAL_H

#include <stddef.h>

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "criu-amdgpu.pb-c.h"

/* For unpacking: names the image. */
#define bad_image(name, fmt, ...) fail(-EBADMSG, "image %s: " fmt, name, ##__VA_ARGS__)

/*
 * An array of @count pointers into one block of elements of @size bytes, as protobuf-c wants repeated messages;
 * zeroed. NULL when out of memory.
 */
void *image_pointers(size_t count, size_t size);
/* Accepts NULL. */
void image_pointers_free(void *pointers);

/* *ret is the caller's also after an error, which is -ENOMEM; it borrows from @nodes. */
int image_nodes_pack(const struct topology *nodes, KfdDeviceEntry ***ret);
/* Accepts NULL. */
void image_nodes_free(KfdDeviceEntry **entries, size_t count);

/* A topology that the caller frees; or -EBADMSG or -ENOMEM. */
int image_nodes_unpack(const char *name, KfdDeviceEntry **entries, size_t count, struct topology **ret);

/* Names a file of criu's number @id; @gpu_id: of contents, the user gpu id. Not for IMAGE_DRM_PAGES, which nobody makes. */
void image_name(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX]);

#endif
