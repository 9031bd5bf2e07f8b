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

#endif
