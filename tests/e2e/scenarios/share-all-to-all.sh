# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Four and eight processes on two GPUs, each of which has the buffers of all others
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back mesh
comes_back_if_listed mesh-kept --processes 8

# It goes on without an interruption, and is dumped and restored once more.
job_start mesh
process_shape >"$work/shape"
dump --leave-running
job_goes
goes_twice
