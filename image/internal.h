/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of image/ share, and protobuf's types. */
#ifndef IMAGE_INTERNAL_H
#define IMAGE_INTERNAL_H

#include <stddef.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kernel.h"
#include "criu-amdgpu.pb-c.h"

/* Unpacking helper: one line naming the image, and the error for its caller. */
#define bad_image(name, fmt, ...)                                  \
	({                                                         \
		pr_err("image %s: " fmt, name, ##__VA_ARGS__);     \
		-EBADMSG;                                          \
	})

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

/* A topology that the caller frees; -EBADMSG after a line that names @name, -ENOMEM without one. */
int image_nodes_unpack(const char *name, KfdDeviceEntry **entries, size_t count, struct topology **ret);

/* Mappings for a message, to be given to image_pointers_free(); NULL when out of memory. */
DeviceVma **image_vmas_pack(const struct device_vma *vmas, size_t count);

/* Heap memory of the caller, whatever the result: 0, -EBADMSG after a line that names @name, or -ENOMEM. */
int image_vmas_unpack(const char *name, DeviceVma **entries, size_t count, struct device_vma **ret);

#endif
