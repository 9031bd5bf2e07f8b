# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Compute queues on a kernel that saves no control stacks: idle ones come back and compute, and are dumped again
# gpus: 1xmi100
# drivers: amdgpu, whose release is judged
# tier: all

job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra aql
expect_verified
job_picture
dump
expect_gone
# Else the driver saves them, and this is a scenario as others.
grep -q 'left out .* bytes of control stacks' "$work/1-dump.log" || echo "# the driver saved the control stacks"
restore
expect_unharmed
dump
expect_gone
restore
expect_unharmed
job_end
