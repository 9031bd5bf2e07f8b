# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# GPUs that a device cgroup (v1) hides, at dump and at restore
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

devices=$work/devices

# devices_make NAME MINOR...: a cgroup (v1) without these render nodes
devices_make() {
	local minor
	mkdir "$devices/$1"
	for minor in "${@:2}"; do
		echo "c 226:$minor rwm" >"$devices/$1/devices.deny"
	done
}

mkdir "$devices"
mount -t cgroup -o devices devices "$devices"
machine
job_dump
devices_make middle 128 130
machine count=3
cgroup_enter "$devices/middle"
accepted "a device cgroup leaves one of three" 128=129
cgroup_enter "$devices"

devices_make none 128 129 130
machine count=3
cgroup_enter "$devices/none"
refused "a device cgroup leaves none" "cannot place 1 saved GPU on 0 local ones"
cgroup_enter "$devices"

devices_make second 128
machine count=2
cgroup_enter "$devices/second"
job_start "${small_job[@]}"
cgroup_enter "$devices"
process_shape >"$work/shape"
dump
expect_images 1 1
machine count=2
accepted "a device cgroup left one of two at dump, and criu puts the process into it again" 129=129
restore_options=(--manage-cgroups=ignore)
machine
accepted "it did, and the process comes back outside of it" 129=128
machine count=2
accepted "it did, and outside of it there are both" 129=129
rmdir "$devices"/{middle,none,second}
umount "$devices"
cgroup_options_again
