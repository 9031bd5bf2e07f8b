/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be known of a restore before there is a task. */
#ifndef CHECKPOINT_PRECHECK_H
#define CHECKPOINT_PRECHECK_H

#include "amdgpu_plugin_topology.h"
#include "checkpoint/shared.h"
#include "host/host.h"

/*
 * Waits some seconds at most until the KFD has taken down processes that have ended, such as the one that is to come
 * back: their GPUs would look busy. The next open of /dev/kfd waits until their memory is free, too. @certain: that a
 * process with GPUs is restored; if not, images of one have to be there.
 */
void precheck_wait(bool certain);

/*
 * Whether some process of the image directory has a chance: GPUs of @machine that are good enough for its own, and
 * pairs of KFD_DEVICE_MAP that are there. Adds what each process needs to @shared. 0, also where it cannot be said yet
 * or is not @certain; -errno after error lines.
 */
int precheck_images(const struct topology *machine, const struct settings *settings, struct shared *shared,
		    bool certain);

#endif
