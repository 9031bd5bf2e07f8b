# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A queue of gfx11 that has run a million packets comes back as fast as a new one
# tier: all
# gpus: 1xnavi31

job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --extra old
job_picture
job_comes_back
seconds=$(sed -n 's/.*its queues of gfx11 were recreated in \([0-9.]*\) s.*/\1/p' "$work"/*-restore.log)
awk -v s="$seconds" 'BEGIN { exit !(s != "" && s < 1) }' || fail "the queues were made again in '$seconds' s"
job_end
