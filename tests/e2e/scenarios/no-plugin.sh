# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Without the plugin criu refuses, and the job does not notice
# gpus: 1xmi100
# tier: all

mkdir "$work/no-plugins"
job_start --vram 256K
process_shape >"$work/shape"
dump_refused -L "$work/no-plugins"
expect_criu_error "Can't handle non-regular mapping"
job_goes
job_returns
job_end
