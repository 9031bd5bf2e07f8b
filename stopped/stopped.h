/* SPDX-License-Identifier: GPL-2.0-only */
/* What other folders use of stopped/. */
#ifndef STOPPED_STOPPED_H
#define STOPPED_STOPPED_H

#include "stopped/hold.h"
#include "stopped/inject.h"
#include "stopped/memory.h"
#include "stopped/recreate.h"

#endif
