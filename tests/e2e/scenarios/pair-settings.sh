# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# KFD_DEVICE_MAP: GPUs by id, minor, address, refused when wrong; settings of files: obeyed, outranked, refused
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine_conf=/etc/criu/amdgpu_plugin.conf
mkdir -p /etc/criu
trap 'rm -f "$machine_conf"' EXIT

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
machine count=3 vram_size="512M, 512M, 256M"
read -r other _ < <(machine_gpus | sed -n 2p)
by "$saved=$other" "GPU chosen by its id" 128=129
by renderD128=renderD129 "GPU chosen by its render minor" 128=129
by 0000:41:00.0=0000:43:00.0 "GPU chosen by its PCI address" 128=129
not_by renderD128=renderD177 "GPU chosen that is not there" "renderD177 is no GPU of the machine"
not_by 0x77=$other "GPU chosen for one that was not there" "0x77 is no GPU of the image"
not_by renderD128=renderD130 "GPU chosen that is too small" "vram_size"
not_by renderD128 "KFD_DEVICE_MAP that cannot be read" "KFD_DEVICE_MAP" "SAVED=LOCAL"

# Files of the machine and in the image directory.
machine count=2
echo "KFD_DEVICE_MAP = renderD128=renderD129   # the second" >"$machine_conf"
accepted "GPU chosen by the machine's file" 128=129
by renderD128=renderD128 "the environment is stronger than the file" 128=128
rm "$machine_conf"
echo "KFD_DEVICE_MAP = renderD128=renderD129" >"$images/amdgpu_plugin.conf"
accepted "GPU chosen by the file in the image directory" 128=129

machine vram_size=256M
echo "KFD_VRAM_SIZE_CHECK = no" >"$images/amdgpu_plugin.conf"
refused "check switched off in the image directory" "amdgpu_plugin.conf:1: KFD_VRAM_SIZE_CHECK may not be set in the image directory"
rm "$images/amdgpu_plugin.conf"
echo "KFD_VRAM_SIZE_CHECK = no" >"$machine_conf"
accepted "check switched off by the machine's file"
rm "$machine_conf"
echo "KFD_PROGRESS = /etc/passwd" >"$images/amdgpu_plugin.conf"
refused "file to be written, named in the image directory" "KFD_PROGRESS"
printf '# comment\nKFD_VRAM_CHECK = 0\n' >"$images/amdgpu_plugin.conf"
refused "unknown setting" "amdgpu_plugin.conf:2" "KFD_VRAM_CHECK"
