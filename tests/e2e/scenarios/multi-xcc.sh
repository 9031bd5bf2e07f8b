# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues on a GPU of several XCCs: refused at dump on kernels that do not restore them, and restored by those that do
# gpus: 1xmi100
# drivers: kfdsim, which has other kinds of GPUs

one_of_eight='s/^count = 8/count = 1/'
machine_load 8xmi300x "$one_of_eight"
job_start --vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4 --extra aql
job_picture
case $(uname -r) in
7.[2-9]* | [89].*)
	dump_refused
	expect_one_error 'has a queue on gpu .*several XCCs.*KFD_RESTORABLE_CHECK=0'
	expect_unharmed
	job_end
	;;
*)
	# This kernel's number does not tell; that it has the check shows at restore.
	dump
	expect_gone
	restore_refused
	expect_one_error 'cannot restore the GPU state'
	rules=6.12 machine_load 8xmi300x "$one_of_eight"
	restore
	expect_unharmed
	job_end
	;;
esac
