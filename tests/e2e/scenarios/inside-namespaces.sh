# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A process that is the first of its pid namespace; a dump by someone who may not
# gpus: 1xmi100

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

# refused_to TEXT COMMAND...: a criu that is run so says why it does not dump, and the job does not notice
refused_to() {
	local text=$1 log
	shift
	images_new
	criu_runs=$((criu_runs + 1))
	log=$work/$criu_runs-dump.log
	! "$@" criu dump -t "${job_pids[0]}" -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 || fail "$* may dump"
	grep -qhs "$text" "$log" "$log.out" || fail "$*: no word of \"$text\": $(tail -n 1 "$log.out") $(criu_errors)"
	expect_unharmed
}

# Without the capability, and in a user namespace, there is no dump: criu itself says so.
refused_to 'CRIU needs to have the CAP_SYS_ADMIN' \
	setpriv --bounding-set -all,+sys_ptrace,+dac_override --reuid 65534 --clear-groups
refused_to "Unable to interrupt task: ${job_pids[0]} (Operation not permitted)" unshare -Ur

dump
states_blank
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
job_pid_find
wait_until 30 states_written || fail "the restored job does not compute"
[ "$(state_get "$job" pid)" = 1 ] || fail "the restored job is not the first process of its namespace"
job_goes
job_kill
expect_gone

# The root of a user namespace may trace what runs in it. Its GPU queues are for others to stop.
printf '#!/bin/sh\nexec unshare -Ur %s "$@"\n' "$gpujob" >"$work/inside"
chmod 755 "$work/inside"
gpujob=$work/inside job_start "${small[@]}"
job_picture
refused_to 'Error (amdgpu_plugin): .*CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial user namespace' \
	nsenter -U -t "${job_pids[0]}"
job_end
