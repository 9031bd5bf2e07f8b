# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Four processes that share, in a pid namespace of their own
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

case=mesh
! kernel_lists || case=mesh-kept
unshare --pid --fork setsid "$gpujob" --state "$job" "$case" </dev/null >/dev/null 2>"$job.log" &
disown
wait_until 60 grep -qs '^phase running' "$job.3" || fail "the job does not start: $(head -n 1 "$job.log")"
[ "$(state_get "$job" pid)" = 1 ] || fail "the job is not the first process of its namespace"
job_pids_find 4
process_shape >"$work/shape"
for _ in 1 2; do
	dump
	expect_gone
	expect_no_objects
	expect_no_dmabufs
	states_blank
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	job_pids_find 4
	wait_until 30 states_written || fail "the restored job does not compute"
	job_goes
done
job_kill
expect_gone
expect_no_objects
expect_no_dmabufs
