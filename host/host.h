/* SPDX-License-Identifier: GPL-2.0-only */
/* What other folders use of host/. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "host/criu.h"
#include "host/settings.h"

#endif
