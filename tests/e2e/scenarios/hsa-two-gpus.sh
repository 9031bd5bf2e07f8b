# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A program on ROCm's HSA runtime that copies between two GPUs in a loop, restored on GPUs with other ids
# gpus: 2xmi100
# kernels: each
# log: ttm_bo_release, the driver leaves the page with events pinned where a GPU has another id (asicsim/complaints)

gpujob=$hsajob
job_start
job_returns machine_load 2xmi100-b
job_end
