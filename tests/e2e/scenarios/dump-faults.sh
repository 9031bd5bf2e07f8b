# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A dump that fails at any step leaves the job as it was, and says once what failed
# gpus: 2xmi100
# tier: all

job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 4
job_picture

# fails PATTERN FAULT: of the CRIU ioctl, a dump makes two calls to heal, then PROCESS_INFO, CHECKPOINT and UNPAUSE
fails() {
	faults "$2"
	dump_refused
	faults
	expect_one_error "$1"
	expect_unharmed
}

fails 'cannot be checkpointed: ' 'kfd:CRIU_OP 1 EIO'
fails 'cannot stop its GPU queues: Input/output error' 'kfd:CRIU_OP 3 EIO'
fails 'cannot take its GPU state .*: Cannot allocate memory' 'kfd:CRIU_OP 4 ENOMEM'
fails 'cannot look at buffer 0 of gpu 0x[0-9a-f]*: Cannot allocate memory' 'drm:PRIME_FD_TO_HANDLE 1 ENOMEM'
fails 'cannot tell who else holds a buffer of renderD.*: Cannot allocate memory' 'drm:PRIME_FD_TO_HANDLE 45 ENOMEM'
fails 'waiting for the GPU: ' 'drm:WAIT_CS 1 EIO'
# A node that does not say its driver may be ours.
fails 'cannot ask renderD.* for its driver: No such device' 'drm:VERSION 1 ENODEV'

# Stopped queues: that is a failure, which the next dump heals.
faults 'kfd:CRIU_OP 5 EIO'
dump_refused --leave-running
faults
expect_one_error 'cannot let its GPU queues run again: Input/output error'
dump --leave-running
expect_unharmed

# Of a job that the dump ends it is none.
faults 'kfd:CRIU_OP 5 EIO'
dump
faults
restore
expect_unharmed
job_end

# Two processes with two files each: what was let go to tell them apart runs, whatever fails then.
job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 4 --children 1 --reopen kfd
job_picture
fails 'cannot let its GPU queues run again: Input/output error' 'kfd:CRIU_OP 13 EIO'
fails 'cannot stop its GPU queues: Input/output error' 'kfd:CRIU_OP 14 EIO'
job_end

# Three processes on two GPUs, saved at the same time and one after the other: whichever copy fails, all of them run on.
job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 4 --children 2 --split
job_picture
fails 'pid [0-9]*, gpu 0x[0-9a-f]*: .*submitting the copy: ' 'drm:CS 2 EIO'
dump
summary='saved 3 processes: [0-9]* bytes, [0-9]* % zeros, copied in [0-9.]* s; queues were stopped for [0-9.]* s; at most'
grep -q "$summary" "$work/$criu_runs-dump.log" || fail "the dump has no summary"
restore
summary='restored 3 processes: [0-9]* bytes, [0-9]* % zeros, copied in [0-9.]* s; tasks waited [0-9.]* s; at most'
grep -q "$summary" "$work/$criu_runs-restore.log" || fail "the restore has no summary"
expect_verified
job_end
