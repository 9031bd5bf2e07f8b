# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Containers of runc: two processes on two GPUs; then one GPU, and the restored container is given the other one
# gpus: 2xmi100

bundle=$work/bundle
images=$work/images
cp "$gpujob" "$work/gpujob"
gpujob=$work/gpujob
mkdir -p "$bundle/rootfs"
mount --bind / "$bundle/rootfs"

# devices_json PATH...: entries that serve as devices and as rules; each of them ignores what is the other's
devices_json() {
	local path separator=
	for path; do
		printf '%s{"path": "%s", "type": "c", "major": %d, "minor": %d, "allow": true, "access": "rwm"}' \
			"$separator" "$path" "0x$(stat -c %t "$path")" "0x$(stat -c %T "$path")"
		separator=', '
	done
}

# container_config DEVICE... -- ARG...: the job as a container that has these devices and no others
container_config() {
	local devices=()
	while [ "$1" != -- ]; do
		devices+=("$1")
		shift
	done
	shift
	cat >"$bundle/config.json" <<-END
	{
		"ociVersion": "1.0.2",
		"process": {
			"user": {"uid": 0, "gid": 0},
			"args": ["$gpujob", "--state", "$job"$(printf ', "%s"' "$@")],
			"cwd": "/",
			"noNewPrivileges": true
		},
		"root": {"path": "rootfs", "readonly": true},
		"mounts": [
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
			{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
			{"destination": "$work", "type": "none", "source": "$work", "options": ["bind", "rw"]}
		],
		"linux": {
			"namespaces": [
				{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "cgroup"}
			],
			"devices": [$(devices_json "${devices[@]}")],
			"resources": {"devices": [{"allow": false, "access": "rwm"}, $(devices_json "${devices[@]}")]}
		}
	}
	END
}

# runc_call WHAT ARG...
runc_call() {
	local what=$1
	shift
	criu_runs=$((criu_runs + 1))
	timeout 120 runc "$what" "$@" job </dev/null >"$work/$criu_runs-runc.log" 2>&1 ||
		fail "runc $what: $(tail -n 1 "$work/$criu_runs-runc.log"): $(criu_errors)"
}

job_pids_find() {
	mapfile -t job_pids < <(pgrep -f "^$gpujob --state $job ")
	[ "${#job_pids[@]}" -eq "$1" ] || fail "${#job_pids[@]} processes, not $1"
}

container_run() {
	rm -f "$job" "$job".[0-9]*
	runc_call run --detach --bundle "$bundle"
	wait_until 30 grep -qs '^phase running' "$job" || fail "the job does not start: $(state_get "$job" message)"
}

checkpoint() {
	rm -rf "$images"
	runc_call checkpoint --image-path "$images" --work-path "$work/dump"
	expect_gone
}

# container_restore PROCESSES
container_restore() {
	states_blank
	runc_call restore --detach --image-path "$images" --work-path "$work/restore" --bundle "$bundle"
	cp "$work/restore/restore.log" "$work/$criu_runs-restore.log"
	job_pids_find "$1"
	wait_until 30 states_written || fail "the restored job does not compute"
	expect_progress
	expect_verified
}

container_end() {
	runc_call delete --force
	expect_gone
	expect_no_objects
}

container_config /dev/kfd /dev/dri/renderD128 /dev/dri/renderD129 -- --children 1 --vram 512K --buffers 5
container_run
wait_until 30 grep -qs '^phase running' "$job.1" || fail "the job's child does not start"
job_pids_find 2
process_shape >"$work/shape"
checkpoint
container_restore 2
expect_shape "$work/shape"
container_end

container_config /dev/kfd /dev/dri/renderD128 -- --vram 512K
container_run
job_pids_find 1
checkpoint
container_config /dev/kfd /dev/dri/renderD129 -- --vram 512K
container_restore 1
grep -q "(renderD128 at dump) becomes gpu 0x[0-9a-f]* (renderD129)" "$work/$criu_runs-restore.log" ||
	fail "the job is not on the other GPU"
container_end
umount "$bundle/rootfs"
