# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What cannot be saved is refused at dump by name, and the process goes on
# gpus: 1xmi100
# drivers: kfdsim, which behaves like several releases

small=(--vram 16K --gtt 16K --userptr 16K --chain 5000 --busy 4)

# refuses PATTERN JOB-ARGUMENT...
refuses() {
	local pattern=$1
	shift
	job_start "${small[@]}" "$@"
	job_picture
	dump_refused
	expect_one_error "$pattern"
	expect_unharmed
	job_kill
	expect_gone
}

refuses 'renderD.* holds 1 buffers of the render node itself' --extra gem
refuses 'has a dma-buf open: that cannot be saved' --extra dmabuf
refuses 'shares a buffer of gpu .* with pid' --extra shared
refuses 'is of a buffer of another process' --extra lent
refuses 'renderD.* does not begin where its buffer does' --extra hole
refuses 'has a file of SMI events open' --extra smi

# The same where the kernel cannot list a file's buffers.
rules=6.12 machine_load 1xmi100
refuses 'renderD.* holds 1 buffers of the render node itself' --extra gem
