# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A user whose criu has two capabilities dumps a job, again, restores it and dumps that, beside processes of others
# gpus: 1xmi100
# host: changed, permissions of device files

chmod 666 /dev/kfd /dev/dri/renderD*
chmod 777 "$work"
export XDG_RUNTIME_DIR=/run/user-1000	# where criu keeps what it knows of the kernel
mkdir -p "$XDG_RUNTIME_DIR"
chown 1000:1000 "$XDG_RUNTIME_DIR"
as_user=(setpriv --reuid 1000 --regid 1000 --clear-groups)
capabilities=checkpoint_restore,sys_ptrace

# Called by criu_call and job_start of lib.sh in the place of criu and the job.
printf '#!/bin/sh\nexec %s %s "$@"\n' "${as_user[*]}" "$gpujob" >"$work/gpujob"
chmod 755 "$work/gpujob"
gpujob=$work/gpujob

# as_criu: what criu_call begins with
as_criu() {
	faulty=("${as_user[@]}" --inh-caps "-all,+${capabilities//,/,+}" --ambient-caps "-all,+${capabilities//,/,+}")
}

user_images() {
	images_new
	chown 1000:1000 "$images"
}

# user_dump ARG...
user_dump() {
	user_images
	criu_call dump --unprivileged -t "${job_pids[0]}" "$@" || fail "criu dump by a user: $(criu_errors)"
}

as_criu
job_start "${small[@]}"
for _ in 1 2; do
	user_dump --leave-running
	expect_right
done
user_dump
expect_gone
states_blank
criu_call restore --unprivileged -d || fail "criu restore by a user: $(criu_errors)"
wait_until 30 states_written || fail "the restored job does not compute"
expect_right
user_dump --leave-running
expect_right

# Somebody else's job on the GPU: nothing tells a user what it has.
gpujob=$top/build/workloads/gpujob
stranger_start --seed 2
user_images
! criu_call dump --unprivileged -t "${job_pids[0]}" --leave-running || fail "a user's criu knows what others have"
expect_one_error "may share a buffer .* with pid $stranger, .*CAP_DAC_READ_SEARCH"
expect_right
capabilities+=,dac_read_search
as_criu
user_dump --leave-running
expect_right
stranger_end
faulty=()
job_end
