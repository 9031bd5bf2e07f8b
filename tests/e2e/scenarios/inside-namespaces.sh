# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A process that is the first of its pid namespace; a dump by someone who may not
# gpus: 1xmi100

small=(--vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4)

# Its own pid is 1; job_pids is how we see it.
unshare --pid --fork setsid "$gpujob" --state "$job" "${small[@]}" \
	</dev/null >/dev/null 2>"$job.log" &
disown
wait_until 30 grep -qs '^phase running' "$job" || fail "the job does not start: $(head -n 1 "$job.log")"
[ "$(state_get "$job" pid)" = 1 ] || fail "the job is not the first process of its namespace"
# Not the one that waits for it outside.
job_pid_find() {
	job_pids=("$(pgrep -nf "^$gpujob --state $job ")")
}
job_pid_find
job_picture
dump --leave-running
expect_unharmed

# Without the capability, and in a user namespace, there is no dump.
images_new
! setpriv --bounding-set -all,+sys_ptrace,+dac_override --reuid 65534 --clear-groups \
	criu dump -t "${job_pids[0]}" -D "$images" -o "$work/nobody.log" </dev/null >"$work/nobody.out" 2>&1 || fail "nobody may dump"
expect_unharmed
images_new
! unshare -Ur criu dump -t "${job_pids[0]}" -D "$images" -o "$work/userns.log" </dev/null >"$work/userns.out" 2>&1 ||
	fail "the root of a user namespace may dump"
expect_unharmed

dump
expect_gone
states_blank
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
job_pid_find
wait_until 30 states_written || fail "the restored job does not compute"
[ "$(state_get "$job" pid)" = 1 ] || fail "the restored job is not the first process of its namespace"
expect_progress
expect_verified
expect_shape "$work/shape"
job_kill
