# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Queues on a GPU of several XCCs: refused at dump where the driver would not restore them whole, and else restored
# gpus: 1xmi100
# drivers: kfdsim, which has other kinds of GPUs

# xccs_start RELEASE EXTRA: a job with a compute queue on eight XCCs, with the rules of that release
xccs_start() {
	rules=$1 machine_load 8xmi300x 's/^count = 8/count = 1/'
	job_start --vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4 --extra "$2"
	job_picture
}

# driver_says VERSION: as amdgpu-dkms does
driver_says() {
	mount -t tmpfs version /sys/module/amdgpu
	printf '%s\n' "$1" >/sys/module/amdgpu/version
}

# What it saves shows it.
xccs_start 6.12 aql
dump_refused
expect_one_error 'has a queue on gpu .*saves 2048 bytes .* 8 XCCs have 16384.*KFD_RESTORABLE_CHECK=0'
expect_unharmed
job_end

# Whatever the release of the kernel is, a driver of another one can be loaded. That of 6.17 takes the state of all.
xccs_start 6.17 wave
driver_says 6.17.3
job_comes_back 2
job_end
umount /sys/module/amdgpu

# That of 6.18 takes what looks like the state of one.
xccs_start 6.18 aql
driver_says 6.18.2
job_comes_back 2
job_end
xccs_start 6.18 wave
driver_says 6.18.2
dump_refused
expect_one_error 'amdgpu-dkms 6.18.2.*8 XCCs only where .*when fewer waves run.*KFD_RESTORABLE_CHECK=0'
expect_unharmed
KFD_RESTORABLE_CHECK=0 dump
expect_gone
restore_refused
expect_one_error 'cannot restore the GPU state'
umount /sys/module/amdgpu
