# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Two GPUs of a hive come back in another order
# gpus: 1xmi100
# tier: all
# drivers: amdgpu, whose machines are described otherwise

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine count=2 hive_id=16 vram_size="256M, 512M"
job_dump
machine count=2 hive_id=16 vram_size="512M, 256M"
accepted "other order" 128=129 129=128
machine count=2 hive_id=16 drm_render_minor="150, 131" vram_size="512M, 256M"
accepted "other order and minors" 128=131 129=150
