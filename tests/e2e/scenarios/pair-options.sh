# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Fewer caches, fewer global wave sync slots, other capabilities: refused, and accepted where an option says so
# gpus: 1xmi100
# drivers: kfdsim, which has any machine that can be described

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine l3_size=1024 num_gws=64 ecc=yes
job_dump
machine num_gws=64 ecc=yes
refused_unless "fewer caches" KFD_CACHES_COUNT_CHECK "caches_count"
machine l3_size=1024 num_gws=32 ecc=yes
refused_unless "fewer global wave sync slots" KFD_NUM_GWS_CHECK "num_gws"
machine l3_size=1024 num_gws=64
refused_unless "other capabilities" KFD_CAPABILITY_CHECK "capability" "SRAM EDC"
