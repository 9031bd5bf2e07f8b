# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Parent and child, each with its own context on both GPUs
# gpus: 2xmi100
# kernels: each

job_start --children 1
job_returns
expect_images 2 2
job_end
