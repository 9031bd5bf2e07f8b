# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Fewer caches, fewer global wave sync slots, other capabilities: refused, and accepted where an option says so
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

# GPUs of the same machine, whose files say otherwise afterwards.
machine
topology_says 's/^caches_count .*/caches_count 9/; s/^num_gws .*/num_gws 64/'
job_dump
topology_says 's/^caches_count .*/caches_count 8/; s/^num_gws .*/num_gws 64/'
refused_unless "fewer caches" KFD_CACHES_COUNT_CHECK "caches_count"
topology_says 's/^caches_count .*/caches_count 9/; s/^num_gws .*/num_gws 32/'
refused_unless "fewer global wave sync slots" KFD_NUM_GWS_CHECK "num_gws"
capability=$(sed -n 's/^capability //p' "$work/topology/nodes/1/properties")
topology_says "s/^caches_count .*/caches_count 9/; s/^num_gws .*/num_gws 64/; s/^capability .*/capability $((capability ^ 1 << 26))/"
refused_unless "other capabilities" KFD_CAPABILITY_CHECK "capability" "SRAM EDC"
topology_says
