# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Two GPUs of a hive, restored in a bigger and in a slower hive, and where there is none
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine count=2 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1000/'
job_dump
machine count=4 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1000/'
accepted "a hive in a bigger hive"
machine count=2
refused "broken hive" "XGMI" "KFD_TOPOLOGY_CHECK=0"
# A buffer that was mapped on both is not, here.
export KFD_TOPOLOGY_CHECK=0
refused "broken hive, KFD_TOPOLOGY_CHECK=0" "cannot restore the GPU state"
unset KFD_TOPOLOGY_CHECK
machine count=2 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1/'
refused_unless "slower hive" KFD_TOPOLOGY_CHECK "MB/s"
machine
refused "fewer GPUs" "fit only 1 local GPU"
topology_says
