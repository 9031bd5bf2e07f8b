# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A kernel of real gfx908 code is caught in the middle, its waves saved by the driver's trap handler, and goes on, also on other GPUs
# gpus: 2xmi100
# tier: all

# The kernel runs until the job lets it go, which checks every word that it has computed.
job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra code
expect_progress
job_picture
job_comes_back 2
job_returns machine_load 2xmi100-b
job_end
