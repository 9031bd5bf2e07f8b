# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The shared files of ROCm before 6.0 are made again where they are gone, and left alone where they are there
# gpus: 1xmi100

memory=/dev/shm/hsakmt_shared_mem
semaphore=/dev/shm/sem.hsakmt_semaphore

# describe: owner, mode, size and bytes of both
describe() {
	stat -c '%n %u:%g %a %s' "$memory" "$semaphore"
	od -An -tx1 "$memory" "$semaphore"
}

printf 'HSAT\0\0\0\0' >"$memory"
head -c 32 /dev/zero >"$semaphore"
printf '\1' | dd of="$semaphore" conv=notrunc status=none
chmod 666 "$memory" "$semaphore"
describe >"$work/shm"

job_start
dump
rm "$memory" "$semaphore"
restore
expect_verified
describe | diff "$work/shm" - || fail "the shared files are not as they were"

dump
printf 'HSAT\6\0\0\0' >"$memory"
describe >"$work/shm"
restore
expect_verified
describe | diff "$work/shm" - || fail "shared files that were there have changed"
rm "$memory" "$semaphore"
job_end
