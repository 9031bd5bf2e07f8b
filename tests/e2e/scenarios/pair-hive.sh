# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Two GPUs of a hive, restored in a bigger hive, beside GPUs outside, and where there is no hive
# gpus: 1xmi100
# drivers: kfdsim, which has any machine that can be described

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine count=2 hive_id=7
job_dump
machine count=4 hive_id=9
accepted "a hive in a bigger hive"
machine count=4 hive_id="0, 9, 0, 9"
accepted "a hive beside GPUs outside of it" 128=129 129=131
machine count=2 hive_id=0
refused_unless "broken hive" KFD_TOPOLOGY_CHECK "XGMI"
machine count=2 hive_id=9 xgmi_bandwidth=1000
refused_unless "slower hive" KFD_TOPOLOGY_CHECK "MB/s"
machine
refused "fewer GPUs" "fit only 1 local GPU"
