# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Beside another job, one with imports by the KFD is refused: the kernel would crash if it were asked who has its buffers
# gpus: 2xmi100
# kernels: each
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

machine_apart
job=$work/other
job_start later
other_pids=("${job_pids[@]}")
job=$work/job
job_start ipc-across
process_shape >"$work/shape"
dump_refused --leave-running
expect_one_error "may share a buffer .* with pid ${other_pids[0]}, .*debugfs"
job_goes
KFD_SHARING_CHECK=0 dump --leave-running
job_goes
job_end

# Imports on the owner's GPU have no attachment: there the kernel can be asked.
job_start ipc-far-sysmem
process_shape >"$work/shape"
dump --leave-running
job_goes
job_end
job=$work/other job_pids=("${other_pids[@]}")
job_end
expect_no_objects
