# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Restored on machines with more GPUs, of which the process sees as many as it had; hives that are bigger, slower, broken
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine
job_dump
machine count=2
accepted "one GPU becomes one of two"
machine count=4 vram_size="256M, 256M, 512M, 256M"
gpus_seen=1 accepted "one GPU becomes the only one of four that is big enough" 128=130
grep -q "3 of 4 GPUs are hidden" "$work/$criu_runs-restore.log" || fail "the plugin does not say that GPUs are hidden"
[ -z "$(find /sys/fs/cgroup -name 'criu-amdgpu-*')" ] || fail "a cgroup was left behind"

# A process that had /dev/kfd open twice, whose second file may come first.
machine
job_dump --reopen kfd
machine count=2
accepted "one GPU becomes one of two, /dev/kfd is open twice"

# Two processes, each of which had both GPUs.
machine count=2 hive_id=16
job_dump --children 1
machine count=3 hive_id=16
accepted "two processes with two GPUs get two of three"

# A hive.
machine count=2 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1000/'
job_dump
machine count=4 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1000/'
accepted "a hive in a bigger hive"
machine count=2
refused "broken hive" "XGMI"
machine count=2 hive_id=16
topology_says 's/^max_bandwidth .*/max_bandwidth 1/'
refused "slower hive" "MB/s"
machine
refused "fewer GPUs" "fit only 1 local GPU"
topology_says
