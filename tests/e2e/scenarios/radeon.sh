# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues of gfx11, which MES maps: at a closed barrier, or idle with gaps in their numbers, whichever way firmware counts
# tier: all
# gpus: 1xnavi31
# kernels: each

# goes_and_comes TIMES EXTRA
goes_and_comes() {
	job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra "$2"
	job_picture
	dump --leave-running
	expect_unharmed
	job_comes_back "$1"
	job_end
	expect_no_objects
}

for derives in N Y; do
	echo "$derives" >/sys/module/amdgpu/parameters/asicsim_mes_derives
	goes_and_comes 2 aql
	goes_and_comes 2 idle
done
echo N >/sys/module/amdgpu/parameters/asicsim_mes_derives
goes_and_comes 10 idle
