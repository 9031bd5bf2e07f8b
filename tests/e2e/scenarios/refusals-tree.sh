# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Refused at dump: another process of the tree
# gpus: 1xmi100

small=(--vram 16K --gtt 16K --userptr 16K --chain 5000 --busy 4)

# Another process of the tree is what cannot be dumped: criu says so, after the first one's GPU was saved.
job_start "${small[@]}" --children 1 --extra misc --extra-last
job_picture
dump_refused
expect_criu_error "Can't dump file .* of that type"
expect_unharmed
job_kill
expect_gone
