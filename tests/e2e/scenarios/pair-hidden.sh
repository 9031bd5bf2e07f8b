# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# A GPU too many: hidden below a container's device filter, or not hidden at all
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

group=/sys/fs/cgroup/e2e

machine
job_dump
mkdir "$group"
"$top/build/workloads/devcgroup" "$group" 128 130
machine count=4
cgroup_enter "$group"
accepted "a device filter leaves two of four, of which one is hidden" 128=128
cgroup_enter /sys/fs/cgroup
rmdir "$group"

# A cgroup that may have none below it.
mkdir "$group"
echo 0 >"$group/cgroup.max.descendants"
cgroup_enter "$group"
machine count=2
refused "a GPU too many and no way to hide it" "cannot be hidden" "restore it in a device cgroup that allows 1 GPU"
cgroup_enter /sys/fs/cgroup
rmdir "$group"
