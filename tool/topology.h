/* SPDX-License-Identifier: GPL-2.0-only */
/* The topology of this machine, or a copy of another one's. */
#ifndef TOOL_TOPOLOGY_H
#define TOOL_TOPOLOGY_H

#include "amdgpu_plugin_topology.h"

/*
 * Reads the topology at @path: a directory like the KFD's in sysfs, or a file that "topology" wrote; NULL: this
 * machine's. 0 and a topology that the caller frees; -errno after a line.
 */
int topology_open(const char *path, struct topology **ret);

#endif
