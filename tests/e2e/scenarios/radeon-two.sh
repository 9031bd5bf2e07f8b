# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Processes on two Radeons come back there and each on the other's GPU, also after a criu that was killed; with a trap handler, sharing a buffer, and on ROCm's runtime
# tier: all
# gpus: 2xnavi31
# kernels: each
# seconds: 300

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

job_start "${small[@]}" --children 1 --split --extra idle
job_picture
dump_killed
expect_unharmed
job_comes_back
mapfile -t minors < <(machine_gpus | cut -d ' ' -f 2)
dump
KFD_DEVICE_MAP="renderD${minors[0]}=renderD${minors[1]},renderD${minors[1]}=renderD${minors[0]}" restore
expect_right
job_end
expect_no_objects

job_start "${small[@]}" --gpus 0 --extra trap --extra idle
job_picture
job_comes_back
job_end
expect_no_objects

gpujob=$top/build/workloads/sharejob
job_start ipc
job_returns
job_end
expect_no_objects

# ROCm's runtime would have both GPUs reach all of its memory.
export ROCR_VISIBLE_DEVICES=0
gpujob=$hsajob
job_start
job_returns
job_returns
job_end
