# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Refused at dump: GPUs without an address space, user namespaces
# gpus: 2xmi100

# refuses PATTERN: the job that runs
refuses() {
	job_picture
	dump_refused
	expect_one_error "$1"
	expect_unharmed
}

job_start "${small[@]}" --gpus 0 --lone
refuses 'sees 2 GPUs and has an address space on 1.*KFD_RESTORABLE_CHECK=0'
job_end

# Root of its own user namespace: the kernel would not let it restore itself.
rm -f "$job"
unshare -Ur setsid bash -c '"$0" --state "$@" & sleep 1000' "$gpujob" "$job" "${small[@]}" \
	</dev/null >/dev/null 2>"$job.log" &
outer=$!
disown
wait_until 30 grep -qs '^phase running' "$job" || fail "the job does not start: $(head -n 1 "$job.log")"
job_pids=("$(state_get "$job" pid)")
refuses 'is in a user namespace'

# That root is not one who may dump.
images_new
log=$work/$((++criu_runs))-dump.log
! nsenter -t "${job_pids[0]}" -U --preserve-credentials criu dump --unprivileged -t "${job_pids[0]}" -D "$images" \
	-o "$log" </dev/null >"$log.out" 2>&1 || fail "the root of a user namespace may dump"
expect_one_error 'CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial user namespace'
expect_unharmed
job_end
kill "$outer" 2>/dev/null || true
