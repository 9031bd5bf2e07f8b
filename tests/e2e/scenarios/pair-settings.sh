# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Configuration files of the machine and in the image directory: obeyed, outranked, refused
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

machine_conf=/etc/criu/amdgpu_plugin.conf
mkdir -p /etc/criu
trap 'rm -f "$machine_conf"' EXIT

machine
job_dump
machine count=2
echo "KFD_DEVICE_MAP = renderD128=renderD129   # the second" >"$machine_conf"
accepted "GPU chosen by the machine's file" 128=129
export KFD_DEVICE_MAP=renderD128=renderD128
accepted "the environment is stronger than the file" 128=128
unset KFD_DEVICE_MAP
rm "$machine_conf"
echo "KFD_DEVICE_MAP = renderD128=renderD129" >"$images/amdgpu_plugin.conf"
accepted "GPU chosen by the file in the image directory" 128=129

machine vram_size=256M
echo "KFD_VRAM_SIZE_CHECK = no" >"$images/amdgpu_plugin.conf"
accepted "check switched off in the image directory"
echo "KFD_VRAM_SIZE_CHECK = yes" >"$machine_conf"
refused "check switched off in the image directory, demanded by the machine" "KFD_VRAM_SIZE_CHECK"
rm "$machine_conf"
echo "KFD_PROGRESS = /etc/passwd" >"$images/amdgpu_plugin.conf"
refused "file to be written, named in the image directory" "KFD_PROGRESS"
printf '# comment\nKFD_VRAM_CHECK = 0\n' >"$images/amdgpu_plugin.conf"
refused "unknown setting" "amdgpu_plugin.conf:2" "KFD_VRAM_CHECK"
