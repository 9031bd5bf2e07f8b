/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings as options of the running criu, where it has such. */
#ifndef HOST_OPTIONS_H
#define HOST_OPTIONS_H

#include "host/settings.h"

/* A settings_getenv_fn: the last --plugin-option for the setting, else the environment variable. NULL: neither. */
const char *options_or_environment(const char *name, void *arg);

/* Keeps as the mistake in @settings, if there is none yet, that an option of this plugin is no setting. */
void options_check(struct settings *settings);

#endif
