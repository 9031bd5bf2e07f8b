# SPDX-License-Identifier: GPL-2.0-only
# What each unit test links with, besides its own file.

test_settings_SRCS := amdgpu_plugin_settings.c
