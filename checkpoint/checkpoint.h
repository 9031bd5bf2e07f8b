/* SPDX-License-Identifier: GPL-2.0-only */
/* What the hooks use of checkpoint/. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "checkpoint/dump.h"
#include "checkpoint/restore.h"

#endif
