# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# /dev/kfd is open twice, which is one process to the kernel; so is each render node: one without a use, the second or the first
# gpus: 2xmi100
# tier: all
# kernels: each

# Which of two files is the KFD's, the driver of Linux 7 does not always show.
for file in kfd render $(kernel_since 7 || echo render-first); do
	job_start --vram 512K --reopen "$file"
	job_returns
	job_end
done
