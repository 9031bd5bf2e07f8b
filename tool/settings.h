/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings as criu would take them, and in words. */
#ifndef TOOL_SETTINGS_H
#define TOOL_SETTINGS_H

#include "host/host.h"

/* "0, from the environment" */
#define SETTING_TEXT_MAX 4096
void setting_text(const struct settings *settings, enum setting id, char text[SETTING_TEXT_MAX]);

#endif
