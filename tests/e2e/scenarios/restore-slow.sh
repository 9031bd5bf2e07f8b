# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Slow GPUs: no process runs before its contents are there, and none at all when criu is killed meanwhile
# gpus: 2xmi100
# tier: all

both_are_handed_over() {
	[ "$(grep -c "criu's main process restores the buffer data" "$log" 2>/dev/null)" = 2 ]
}

job_start --children 1 --vram 2M --gtt 64K
dump
expect_no_objects
gpus_state slow
# As if there were a connection, for which tasks wait.
: >"$images/tcp-stream-1f.img"
log=$work/killed.log
states_blank
criu restore -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 &
wait_until 30 both_are_handed_over || fail "the buffer data were not handed over: $(tail -n 1 "$log")"
kill -KILL $!
wait $! 2>/dev/null || true
! grep -q 'Run late stage hook' "$log" || fail "the processes were restored before criu was killed"
wait_until 30 grep -q 'Error (amdgpu_plugin): criu.s main process, which restores the memory of the GPUs, is gone' "$log" || fail "no process noticed that criu was killed"
# Those that had their contents stay in criu's restorer, as they do without a GPU: criu does not tell them.
! grep -q '^stamp ' "$job" "$job.1" || fail "a process runs without its GPU's contents"
job_kill
expect_gone
expect_no_objects
restore
gpus_state ok
log=$work/$criu_runs-restore.log
grep -q 'tasks waited 0\.[0-4]' "$log" || fail "tasks did not wait before they were mapped: $(grep 'tasks waited' "$log")"
expect_verified
job_end
