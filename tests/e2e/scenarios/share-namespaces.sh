# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Four processes that share, in a pid namespace of their own
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# pids_find: in the order of the pids that they have in their namespace
pids_find() {
	job_pids_find 4
	mapfile -t job_pids < <(for pid in "${job_pids[@]}"; do
		awk -v pid="$pid" '$1 == "NSpid:" { print $NF, pid }' "/proc/$pid/status"
	done | sort -n | cut -d ' ' -f 2)
}

case=mesh
! kernel_lists || case=mesh-kept
unshare --pid --fork setsid "$gpujob" --state "$job" "$case" </dev/null >/dev/null 2>"$job.log" &
disown
wait_until 60 grep -qs '^phase running' "$job.3" || fail "the job does not start: $(head -n 1 "$job.log")"
[ "$(state_get "$job" pid)" = 1 ] || fail "the job is not the first process of its namespace"
pids_find
process_shape >"$work/shape"
for _ in 1 2; do
	dump
	expect_no_objects
	expect_no_dmabufs
	states_blank
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	pids_find
	wait_until 30 states_written || fail "the restored job does not compute"
	job_goes
done
job_kill
expect_gone
expect_no_objects
expect_no_dmabufs
