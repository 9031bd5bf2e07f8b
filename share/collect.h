/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_COLLECT_H
#define SHARE_COLLECT_H

#include "share/survey.h"

/* Finds all holders, and what else the files of render nodes hold. */
int collect_all(struct survey *survey);

#endif
