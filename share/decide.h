/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_DECIDE_H
#define SHARE_DECIDE_H

#include "share/survey.h"

/* Numbers the buffers with several names, and writes into the states what each is to its processes. */
int decide_all(struct survey *survey);

#endif
