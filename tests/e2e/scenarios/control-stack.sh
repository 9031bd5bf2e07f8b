# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A compute queue of gfx9: restored where the driver saves its control stack, and refused where not, as by Linux 7.2.12
# gpus: 1xmi100

saves_it=yes
if [ -d /sys/module/kfdsim ]; then
	rules=7.2.12 machine_load 1xmi100
	saves_it=
elif [[ $(uname -r) == 7.2.* ]]; then
	saves_it=
fi

job_start --vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4 --extra aql
job_picture
if [ -z "$saves_it" ]; then
	dump_refused
	expect_one_error 'has a queue on gpu .*saves no control stack.*KFD_RESTORABLE_CHECK=0'
	expect_unharmed
	# The job's queue stands at a barrier: no kernel runs whose stack would be missing.
	export KFD_RESTORABLE_CHECK=0
fi
dump
expect_gone
expect_no_objects
restore
expect_unharmed
job_end
