# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A job that has set a trap handler has it again, also in a second generation and on other GPUs; one without is not changed
# gpus: 2xmi100
# kernels: each
# drivers: amdgpu, which has the memory where the addresses are

# The job reads them by its GPU.
job_start --vram 64K --gtt 64K --userptr 64K --extra trap
process_shape >"$work/shape"
dump --leave-running
expect_verified
expect_shape "$work/shape"
job_returns machine_load 2xmi100-b
job_returns
job_end
