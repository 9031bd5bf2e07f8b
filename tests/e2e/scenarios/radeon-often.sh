# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues of gfx11: saved while the job goes on, restored twice and ten times; one with a mask of CUs is refused; beside a desktop whose processes share a buffer
# tier: all
# gpus: 1xnavi31
# kernels: each
# seconds: 600

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

# goes_and_comes TIMES EXTRA
goes_and_comes() {
	job_start "${small[@]}" --extra "$2"
	job_picture
	dump --leave-running
	expect_unharmed
	job_comes_back "$1"
	job_end
}

echo Y >/sys/module/amdgpu/parameters/asicsim_mes_derives
goes_and_comes 2 aql
echo N >/sys/module/amdgpu/parameters/asicsim_mes_derives
goes_and_comes 10 packets
expect_no_objects

# A queue that runs on some CUs only.
job_start "${small[@]}" --extra masked
job_picture
dump_refused
expect_one_error 'it runs on some CUs only (CU mask)'
expect_unharmed
job_end
expect_no_objects

# A compositor and its client: two processes without /dev/kfd that have an object of the render node in common.
gpujob=$top/build/workloads/sharejob stranger_start render-pair
goes_and_comes 1 idle
stranger_end
