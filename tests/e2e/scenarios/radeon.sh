# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues of gfx11, which MES maps: at a closed barrier, and idle with gaps in their numbers, whichever way firmware counts
# gpus: 1xnavi31
# kernels: each

for way in N:aql Y:idle; do
	echo "${way%:*}" >/sys/module/amdgpu/parameters/asicsim_mes_derives
	job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra "${way#*:}"
	job_picture
	job_comes_back
	job_end
	expect_no_objects
done
echo N >/sys/module/amdgpu/parameters/asicsim_mes_derives
