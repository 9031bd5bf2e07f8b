// SPDX-License-Identifier: GPL-2.0-only
/*
 * The version, with the source that this was built from: the only file that is compiled again for another commit.
 * debian/changelog says the number, too; rpm/build takes it from here.
 */
#include "amdgpu_plugin_util.h"

#define NUMBER "0.3"

#ifndef PLUGIN_SOURCE
#define PLUGIN_SOURCE "" /* not known */
#endif

/* In one piece for amdgpu-checkpoint, which does not ask a plugin that it looks at. */
static const char marked[] __attribute__((used)) = PLUGIN_VERSION_MARK NUMBER PLUGIN_SOURCE;

const char *const plugin_version = marked + sizeof(PLUGIN_VERSION_MARK) - 1;
