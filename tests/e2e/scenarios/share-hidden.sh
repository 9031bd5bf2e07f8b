# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A process without /dev/kfd has files and buffers of a GPU that the KFD does not show: refused by name, and it goes on
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# What the KFD shows is decided by the device cgroup of who looks: here it is that of criu.
devices=$work/devices
hidden=$(machine_gpus | awk 'NR == 2 { print $2 }')
mkdir "$devices"
mount -t cgroup -o devices devices "$devices"
mkdir "$devices/hidden"
echo "c 226:$hidden rwm" >"$devices/hidden/devices.deny"

# refused_hidden CASE
refused_hidden() {
	pair=$1
	job_start "$1"
	process_shape >"$work/shape"
	echo "$BASHPID" >"$devices/hidden/cgroup.procs"
	dump_refused
	echo "$BASHPID" >"$devices/cgroup.procs"
	expect_one_error "renderD$hidden is not of a GPU that /dev/kfd shows"
	job_goes
	job_end
	expect_no_objects
	expect_no_dmabufs
	shown "$1, refused"
}

! kernel_lists || refused_hidden render
rmdir "$devices/hidden"
