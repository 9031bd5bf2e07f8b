/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_SIGNS_H
#define SHARE_SIGNS_H

#include "share/survey.h"

/* Marks files as another one, where the KFD's shows by other signs than mappings. */
int signs_settle(struct survey *survey);

#endif
