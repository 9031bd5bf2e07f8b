# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two GPUs of which none imports the other's VRAM: each copies its own, here and on other GPUs
# gpus: 2xmi100
# kernels: 7.2

job_start --vram 1M
job_returns machine_load 2xmi100
job_returns machine_load 2xmi100-b
job_end
