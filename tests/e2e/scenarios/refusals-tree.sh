# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Refused at dump: another process of the tree, queues of a generation whose queues no kernel restores
# gpus: 1xmi100
# drivers: kfdsim, which has other kinds of GPUs

small=(--vram 16K --gtt 16K --userptr 16K --chain 5000 --busy 4)

# Another process of the tree is what cannot be dumped: criu says so, after the first one's GPU was saved.
job_start "${small[@]}" --children 1 --extra misc --extra-last
job_picture
dump_refused
expect_criu_error "Can't dump file .* of that type"
expect_unharmed
job_kill
expect_gone

# A generation whose queues are not restored by any kernel.
machine_load 1xmi100 's/^gfx_target_version.*/gfx_target_version = 110000/'
job_start "${small[@]}"
job_picture
dump_refused
expect_one_error 'has a queue on gpu .*gfx version 110000.*KFD_RESTORABLE_CHECK=0'
expect_unharmed
KFD_RESTORABLE_CHECK=0 dump
expect_gone
restore_refused
expect_one_error 'cannot restore the GPU state'
