# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A restore long after the dump, whose tasks have another clock than the driver, waits for slow engines as it should
# gpus: 2xmi100
# kernels: 7.2

# criu gives the tasks the clock of the dump.
job_start --vram 256K --gtt 64K --children 1
job_picture
dump
sleep 25
gpus_state slow
restore
gpus_state ok
expect_unharmed
job_end
