/* SPDX-License-Identifier: GPL-2.0-only */
/* AMD render nodes: recognise and open them. */
#ifndef AMDGPU_PLUGIN_DRM_H
#define AMDGPU_PLUGIN_DRM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether an open DRM file is driven by amdgpu; asks the driver for its name, changes nothing. */
bool drm_is_amd(int fd);

/*
 * Opens the AMD render node of a minor. The file is new: GEM handles made in it are
 * nobody else's. Returns an fd that the caller owns, or -errno without a message
 * (-ENODEV when the node is there and is not that of an AMD GPU).
 */
int drm_open_minor(uint32_t minor);

/*
 * How many GEM objects an open file of an AMD render node holds, whoever opened it; the KFD's
 * own buffers are none of them. Changes nothing. Before Linux 6.18 only the first
 * 4096 handles are looked at. 0 or -errno without a message.
 */
int drm_count_objects(int fd, uint32_t *ret);

#endif
