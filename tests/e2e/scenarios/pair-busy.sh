# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# GPUs that another job uses: an idle one comes first, for all tasks alike, and a queue that is taken is said to be
# gpus: default

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

other=

# other_start GPU: a job of somebody else on the GPU of this number
other_start() {
	"$gpujob" --state "$work/other" --background --gpus "$1" "${small_job[@]}" >"$work/other.start" 2>&1 ||
		fail "the other job did not start: $(head -n 1 "$work/other.start")"
	other=$(state_get "$work/other" pid)
}

other_end() {
	kill -KILL "$other"
	wait_until 10 no_process "$other" || fail "the other job does not end"
}

job_dump --children 1
machine_load 2xmi100 '/^hive_id/d'
other_start 0
accepted "parent and child go to the idle one of two GPUs" 128=129
! grep -q 'becomes gpu .*(renderD128)' "$work/$criu_runs-restore.log" || fail "a task went to the GPU in use"
[ "$(grep -c 'amdgpu_plugin: Warning: pid .* the kernel confuses the two ids' "$work/$criu_runs-restore.log")" -eq 2 ] ||
	fail "no warning of other ids for each of two tasks"
other_end

machine_load default
other_start 0
pair="the only GPU is in use"
! criu_call restore -d || fail "criu restore succeeded, but it should have refused"
expect_gone
grep -q 'Error (amdgpu_plugin): .*Device or resource busy (another process holds an SDMA queue' \
	"$work/$criu_runs-restore.log" || fail "no line about queues of another process: $(criu_errors)"
alive "$other" || fail "the other job is gone"
pair_shown
other_end
accepted "and then it is free again" 128=128
