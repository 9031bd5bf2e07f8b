# SPDX-License-Identifier: GPL-2.0-only
# What each unit test links with, besides its own file.

topology_SRCS := amdgpu_plugin_topology.c amdgpu_plugin_topology_read.c amdgpu_plugin_settings.c

test_settings_SRCS := amdgpu_plugin_settings.c
test_image_SRCS := amdgpu_plugin_image.c $(topology_SRCS) $(BUILD)/proto/criu-amdgpu.pb-c.c
test_vma_SRCS := amdgpu_plugin_vma.c
