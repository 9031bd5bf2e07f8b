/* SPDX-License-Identifier: GPL-2.0-only */
/* What the images say of the buffers that a survey has found. */
#ifndef SHARE_DECIDE_H
#define SHARE_DECIDE_H

#include "share/survey.h"

/* 0, or -errno after an error line. */
int decide_all(struct survey *survey);

#endif
