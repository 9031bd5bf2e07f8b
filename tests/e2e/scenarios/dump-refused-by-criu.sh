# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016
# Dumps that fail for reasons of criu's, after the GPU's state was saved: the job goes on as before
# gpus: 1xmi100
# tier: all

job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 4
job_picture

# The script that criu calls when everything is saved.
action_script "$work/no" 'exit 1'
dump_refused --action-script "$work/no"
expect_criu_error 'Script .* exited'
expect_unharmed

# No image can be written.
images_new
mount -t tmpfs -o ro tmpfs "$images"
! criu_call dump -t "${job_pids[0]}" || fail "criu dump wrote into a read-only directory"
umount "$images"
expect_criu_error 'Read-only file system'
expect_unharmed

# GPU writes to memory would be missed by the next dump.
images_new
! criu_call pre-dump -t "${job_pids[0]}" || fail "criu pre-dump succeeded"
expect_one_error 'cannot be pre-dumped'
expect_unharmed

dump --leave-running --track-mem
earlier=${images##*/}
dump_refused --track-mem --prev-images-dir "../$earlier"
expect_one_error 'prev-images-dir'
expect_unharmed
# Again, and then a plain dump into the same directory: the link to earlier images is not in its way.
! criu_call dump -t "${job_pids[0]}" --track-mem --prev-images-dir "../$earlier" || fail "an incremental dump succeeded"
expect_one_error 'prev-images-dir'
[ ! -L "$images/parent" ] || fail "the link to earlier images is still there"
criu_call dump -t "${job_pids[0]}" --leave-running || fail "a plain dump after that is refused: $(criu_errors)"
expect_unharmed

# A debugger holds it.
strace -o /dev/null -p "${job_pids[0]}" </dev/null >/dev/null 2>&1 &
strace=$!
wait_until 20 grep -q "^TracerPid:.*$strace" "/proc/${job_pids[0]}/status" || fail "strace does not attach"
dump_refused
expect_criu_error "Unable to detach from ${job_pids[0]}"
kill "$strace"
{ wait "$strace" || true; } 2>/dev/null
expect_unharmed

expect_healed() {
	grep -q 'had been left stopped' "$work/$criu_runs-dump.log" || fail "no word about queues that had been left stopped"
	expect_unharmed
}

# The next dump lets them run where the guard was killed, also one that is refused.
dump_killed "$no_guard"
dump --leave-running
expect_healed
dump_killed "$no_guard"
dump_refused --lazy-pages --port 1
expect_one_error 'lazy-pages'
expect_healed
dump
restore
expect_verified
job_end
