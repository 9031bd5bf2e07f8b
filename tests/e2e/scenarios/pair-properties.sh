# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Restored on one GPU that differs from that of the dump: better, worse, worse and allowed to be
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

firmware='s/^fw_version .*/fw_version 64/; s/^sdma_fw_version .*/sdma_fw_version 18/'

machine
topology_says "$firmware"
job_dump
machine drm_render_minor=140 pci=0000:e3:00.0
topology_says "$firmware"
accepted "other id, minor, address" 128=140
machine vram_size=1G
topology_says "$firmware"
accepted "bigger VRAM"
topology_says 's/^fw_version .*/fw_version 70/; s/^sdma_fw_version .*/sdma_fw_version 19/'
accepted "newer firmware"
machine vram_size=256M
topology_says "$firmware"
refused_unless "smaller VRAM" KFD_VRAM_SIZE_CHECK "vram_size"
machine
topology_says "$firmware; s/^fw_version .*/fw_version 63/"
refused_unless "older firmware" KFD_FW_VER_CHECK "fw_version"
topology_says "$firmware; s/^sdma_fw_version .*/sdma_fw_version 17/"
refused_unless "older SDMA firmware" KFD_SDMA_FW_VER_CHECK "sdma_fw_version"
topology_says "$firmware; s/^device_id .*/device_id 29711/"
refused "other device id" "device_id"
topology_says
