# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Slow GPUs: no process runs before its contents are there, and none at all when criu is killed meanwhile
# gpus: 2xmi100
# tier: all

# lines_of TEXT: their numbers
lines_of() {
	grep -n "$1" "$log" | cut -d : -f 1
}

worker_has_it() {
	[ "$(grep -c "restored by criu's main process" "$log" 2>/dev/null)" = 2 ]
}

job_start --children 1 --vram 2M --gtt 64K
dump
expect_no_objects
gpus_state slow
log=$work/killed.log
states_blank
KFD_WAIT=early criu restore -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 &
wait_until 30 worker_has_it || fail "the contents were not handed over: $(tail -n 1 "$log")"
kill -KILL $!
wait $! 2>/dev/null || true
! grep -q 'Run late stage hook' "$log" || fail "the processes were restored before criu was killed"
wait_until 30 grep -q 'Error (amdgpu_plugin): the worker .* is gone' "$log" || fail "no process noticed that criu was killed"
# Those that had their contents stay in criu's restorer, as they do without a GPU: criu does not tell them.
! grep -q '^stamp ' "$job" "$job.1" || fail "a process runs without its GPU's contents"
job_kill
expect_gone
expect_no_objects
KFD_WAIT=early restore
gpus_state ok
log=$work/$criu_runs-restore.log
[ "$(lines_of 'gpu .*: restored [0-9]* bytes' | tail -n 1)" -lt "$(lines_of 'Run late stage hook' | head -n 1)" ] ||
	fail "a process was resumed before its contents were there"
expect_verified
job_end
