# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Much more VRAM than everything else, in buffers of many sizes
# gpus: 1xmi100
# tier: all
# kernels: each

job_start --vram 24M --buffers 7 --gtt 3M --userptr 2M
job_returns
job_end
