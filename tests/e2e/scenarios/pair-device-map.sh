# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# KFD_DEVICE_MAP: GPUs chosen by id, render minor, PCI address; checked, and refused when wrong
# gpus: 1xmi100
# drivers: kfdsim, which has any machine that can be described

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

# by MAP ACCEPTED...
by() {
	export KFD_DEVICE_MAP=$1
	accepted "${@:2}"
	unset KFD_DEVICE_MAP
}

# not_by MAP REFUSED...
not_by() {
	export KFD_DEVICE_MAP=$1
	refused "${@:2}"
	unset KFD_DEVICE_MAP
}

machine
read -r saved _ < <(machine_gpus)
job_dump
machine count=3 vram_size="4G, 4G, 2G" gpu_id="0x1111, 0x2222, 0x3333"
by "$saved=0x2222" "GPU chosen by its id" 128=129
by renderD128=renderD129 "GPU chosen by its render minor" 128=129
by 0000:41:00.0=0000:43:00.0 "GPU chosen by its PCI address" 128=129
not_by renderD128=renderD177 "GPU chosen that is not there" "renderD177 is no GPU of the machine"
not_by 0x77=0x1111 "GPU chosen for one that was not there" "0x77 is no GPU of the image"
not_by renderD128=renderD130 "GPU chosen that is too small" "vram_size"
not_by renderD128 "KFD_DEVICE_MAP that cannot be read" "KFD_DEVICE_MAP" "SAVED=LOCAL"
