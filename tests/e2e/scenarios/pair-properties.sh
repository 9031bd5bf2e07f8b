# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Restored on one GPU that differs from that of the dump: better, worse, worse and allowed to be
# gpus: 1xmi100
# drivers: kfdsim, which has any machine that can be described

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine
job_dump
machine gpu_id=0x9e41 drm_render_minor=140 card_minor=3 pci=0000:e3:00.0 cpu.count=2 cpu=1 name=other
accepted "other id, minor, address, node" 128=140
machine vram_size=8G
accepted "bigger VRAM"
machine fw_version=70 sdma_fw_version=19
accepted "newer firmware"
machine vram_size=2G
refused_unless "smaller VRAM" KFD_VRAM_SIZE_CHECK "vram_size"
machine fw_version=63
refused_unless "older firmware" KFD_FW_VER_CHECK "fw_version"
machine sdma_fw_version=17
refused_unless "older SDMA firmware" KFD_SDMA_FW_VER_CHECK "sdma_fw_version"
machine device_id=0x740f
refused "other device id" "device_id"

# The job has SDMA queues on both partitions of a GPU, and each needs the doorbells of its place.
job_kill
expect_gone
machine gfx_target_version=90402 count=2 partitions=2
job_dump
accepted "partitions at their places" 128=128 129=129
export KFD_DEVICE_MAP=renderD128=renderD129,renderD129=renderD128
refused "partitions exchanged" "partition_of_sdma_queues, wanted 0"
