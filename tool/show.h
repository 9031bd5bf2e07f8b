/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two forms of show share. */
#ifndef TOOL_SHOW_H
#define TOOL_SHOW_H

#include "tool/commands.h"
#include "tool/sharing.h"
#include "tool/summary.h"

int show_json(const char *path, const struct images *images, const struct sharing *sharing);

/* What holes save of a pages file, as far as is known. */
uint64_t zero_bytes(const struct image_file *pages);

#endif
