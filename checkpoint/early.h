/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be known of a restore before there is a task. */
#ifndef CHECKPOINT_EARLY_H
#define CHECKPOINT_EARLY_H

#include "amdgpu_plugin_topology.h"
#include "host/host.h"

/*
 * Whether some process of the image directory has a chance: GPUs of @machine that are good enough for its own, and
 * pairs of KFD_DEVICE_MAP that are there. 0, also where it cannot be said yet; -errno after error lines.
 */
int early_check(const struct topology *machine, const struct settings *settings);

#endif
