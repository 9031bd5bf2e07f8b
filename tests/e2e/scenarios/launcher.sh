# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2016
# A launcher with render nodes and without /dev/kfd; files with flags, moved doorbells; a node that was only inherited
# gpus: 2xmi100

# launch REDIRECTION... -- JOB-ARGUMENT...: a shell has the nodes 5 and 6, and starts the job, for which they are redirected
launch() {
	local redirection=$1 nodes=()
	shift
	mapfile -t nodes < <(machine_gpus | awk '{ print "/dev/dri/renderD" $2 }')
	rm -f "$job"
	setsid bash -c 'exec 5<>"$1" 6<"$2"; job=$3; shift 3
		'"$redirection"' "$0" --state "$job" "$@" & while :; do wait; sleep 0.1; done' \
		"$gpujob" "${nodes[@]}" "$job" "${small[@]}" "$@" </dev/null >/dev/null 2>"$job.log" &
	launcher=$!
	disown
	wait_until 30 grep -qs '^phase running' "$job" || fail "the job does not start: $(head -n 1 "$job.log")"
	job_pids=("$(state_get "$job" pid)")
}

# launcher_files: "FD GPU FLAGS" of its render nodes, the GPU by its number on this machine
launcher_files() {
	local fd minor
	for fd in 5 6; do
		minor=$(readlink "/proc/$launcher/fd/$fd")
		minor=${minor#/dev/dri/renderD}
		printf '%s %s %s\n' "$fd" "$(machine_gpus | awk -v minor="$minor" '$2 == minor { print NR }')" \
			"$(awk '$1 == "flags:" { print $2 }' "/proc/$launcher/fdinfo/$fd")"
	done
}

# Its files come back, on the GPUs that the job's became.
launch '' --extra flags --extra moved
launcher_files >"$work/files"
process_shape >"$work/shape"
images_new
criu_call dump -t "$launcher" || fail "criu dump ended with status $?: $(criu_errors)"
expect_gone
machine_load 2xmi100-b
restore
expect_verified
diff "$work/files" <(launcher_files) >&2 || fail "the launcher's files are others: $(launcher_files | tr '\n' ';')"
expect_shape "$work/shape"
kill -KILL "$launcher"
job_end

# An inherited node is no address space: the kernel would crash.
machine_load 2xmi100
launch '' --gpus 0 --lone
images_new
! criu_call dump -t "$launcher" || fail "criu dump succeeded, but it should have refused"
expect_one_error 'sees 2 GPUs and has an address space on 1'
expect_progress
kill -KILL "$launcher"
job_end
