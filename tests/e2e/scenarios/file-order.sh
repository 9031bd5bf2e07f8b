# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Render nodes have lower numbers than /dev/kfd, and criu works in another directory than that of the images
# gpus: 2xmi100
# tier: all

mkdir "$work/elsewhere"
job_start "${small[@]}" --kfd-last
process_shape >"$work/shape"
dump -W "$work/elsewhere"
expect_images 2 1
machine_load 2xmi100-b
restore -W "$work/elsewhere"
job_goes
job_end
