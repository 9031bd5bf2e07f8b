# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# One buffer of 3 GiB, nine tenths of it zeros: every byte is right after the restore
# gpus: default
# memory: 3072
# vram: 4096
# needs: build/bench/bufferjob, bench-build
# tier: all

machine_load default 's/^vram_size.*/vram_size = 4G/'
bytes=$((3 << 30))

# job_says TEXT: it has written a line that begins so
job_says() {
	alive "${job_pids[0]}" || fail "the job ended: $(tail -n 1 "$work/job.log")"
	grep -q "^$1" "$work/job.log"
}

setsid "$top/build/bench/bufferjob" --size "$bytes" --zeros 65536 </dev/null >"$work/job.log" 2>&1 &
job_pids=($!)
disown
wait_until 120 job_says ready || fail "the job did not start"
dump
[ "$(stat -c %s "$images"/amdgpu-pages-*.img)" -eq $((bytes + 8)) ] || fail "the pages file is not of $bytes bytes"
[ "$(images_mib)" -lt 400 ] || fail "the images have $(images_mib) MiB, though nine tenths are zeros"
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
kill -USR1 "${job_pids[0]}"
wait_until 200 job_says "verified $bytes" || fail "the job did not verify its buffer"
kill -TERM "${job_pids[0]}"
expect_gone
