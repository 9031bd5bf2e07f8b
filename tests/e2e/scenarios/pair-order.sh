# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Two GPUs come back in another order, on other NUMA nodes, and not on two where they were on one
# gpus: 1xmi100
# drivers: kfdsim, which has any machine that can be described

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine count=2 vram_size="4G, 8G" cpu.count=2 cpu="0, 1"
job_dump
machine count=2 vram_size="8G, 4G" cpu.count=2 cpu="0, 1"
accepted "other order and NUMA nodes swapped" 128=129 129=128
machine count=2 vram_size="4G, 8G" cpu.count=2 cpu="1, 1"
accepted "two NUMA nodes become one" 128=128 129=129

machine count=2 cpu.count=2 cpu="0, 0"
job_dump
machine count=2 cpu.count=2 cpu="0, 1"
refused_unless "one NUMA node becomes two" KFD_NUMA_CHECK "NUMA"
machine count=2 gpu_id="0x1111, 0x2222" drm_render_minor="150, 131" cpu.count=3 cpu="2, 2"
accepted "other ids, minors and NUMA node" 128=150 129=131
