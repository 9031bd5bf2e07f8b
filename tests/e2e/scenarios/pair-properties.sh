# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Restored on one GPU that differs from that of the dump: better, worse, worse and allowed to be
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

# What simulated GPUs do not have is what their files say.
saved='s/^fw_version .*/fw_version 64/; s/^sdma_fw_version .*/sdma_fw_version 18/; s/^caches_count .*/caches_count 9/; s/^num_gws .*/num_gws 64/'

machine
topology_says "$saved"
job_dump
machine drm_render_minor=140 pci=0000:e3:00.0
topology_says "$saved"
accepted "other id, minor, address" 128=140
machine vram_size=1G
topology_says "$saved"
accepted "bigger VRAM"
topology_says "$saved; s/^fw_version .*/fw_version 70/; s/^sdma_fw_version .*/sdma_fw_version 19/"
accepted "newer firmware"
machine vram_size=256M
topology_says "$saved"
refused_unless "smaller VRAM" KFD_VRAM_SIZE_CHECK "vram_size"
machine
topology_says "$saved; s/^fw_version .*/fw_version 63/"
refused_unless "older firmware" KFD_FW_VER_CHECK "fw_version"
topology_says "$saved; s/^sdma_fw_version .*/sdma_fw_version 17/"
refused_unless "older SDMA firmware" KFD_SDMA_FW_VER_CHECK "sdma_fw_version"
topology_says "$saved; s/^caches_count .*/caches_count 8/"
refused_unless "fewer caches" KFD_CACHES_COUNT_CHECK "caches_count"
topology_says "$saved; s/^num_gws .*/num_gws 32/"
refused_unless "fewer global wave sync slots" KFD_NUM_GWS_CHECK "num_gws"
capability=$(sed -n 's/^capability //p' "$work/topology/nodes/1/properties")
topology_says "$saved; s/^capability .*/capability $((capability ^ 1 << 26))/"
refused_unless "other capabilities" KFD_CAPABILITY_CHECK "capability" "SRAM EDC"
topology_says "$saved; s/^device_id .*/device_id 29711/"
refused "other device id" "device_id"
topology_says
