# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Parent and child on two Radeons come back there, each GPU on the other one, and on other machines; after a criu that was killed, and sharing a buffer
# tier: all
# gpus: 2xnavi31
# kernels: each
# seconds: 480

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

job_start "${small[@]}" --children 1 --apart --extra idle
job_picture
dump_killed
expect_unharmed
job_comes_back
mapfile -t minors < <(machine_gpus | cut -d ' ' -f 2)
dump
KFD_DEVICE_MAP="renderD${minors[0]}=renderD${minors[1]},renderD${minors[1]}=renderD${minors[0]}" restore
expect_right
job_returns machine_load 2xnavi31 's/^pci = .*/pci = 0000:21:00.0 + 3/; s/^name/drm_render_minor = 151 + 9\n&/'
job_returns machine_load 2xnavi31
job_end
expect_no_objects

job_start "${small[@]}" --gpus 0 --extra idle
job_picture
job_comes_back
job_end
expect_no_objects

gpujob=$top/build/workloads/sharejob
job_start ipc
job_returns
job_end
expect_no_objects
