# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Processes that see a GPU of gfx9 and one of gfx11: RESTORE gets the queues of the one, those of the other are made again
# tier: all
# gpus: mi100-navi31

job_start --vram 64K --gtt 64K --userptr 64K --chain 500 --children 1 --split --extra aql
job_picture
job_comes_back 2
job_end
