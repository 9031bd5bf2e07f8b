# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Containers of runc and crun: two processes on two GPUs; then one GPU, and the restored container is given the other one
# gpus: 2xmi100
# kernels: each

bundle=$work/bundle
images=$work/images
more_mounts=	# JSON
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
			{"destination": "$work", "type": "none", "source": "$work", "options": ["bind", "rw"]}$more_mounts
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

# engine_call WHAT ARG...
engine_call() {
	local what=$1
	shift
	criu_runs=$((criu_runs + 1))
	timeout 120 "$engine" "$what" "$@" job </dev/null >"$work/$criu_runs-$engine.log" 2>&1 ||
		fail "$engine $what: $(tail -n 1 "$work/$criu_runs-$engine.log"): $(grep -hs Error "$work"/*/*.log | head -n 3)"
}

container_run() {
	rm -f "$job" "$job".[0-9]*
	engine_call run --detach --bundle "$bundle"
	wait_until 30 grep -qs '^phase running' "$job" || fail "the job does not start: $(state_get "$job" message)"
}

checkpoint() {
	rm -rf "$images" "$work/dump" "$work/restore"
	mkdir "$images" "$work/dump" "$work/restore"
	engine_call checkpoint --image-path "$images" --work-path "$work/dump"
	expect_gone
}

# container_restore PROCESSES
container_restore() {
	states_blank
	engine_call restore --detach --image-path "$images" --work-path "$work/restore" --bundle "$bundle"
	job_pids_find "$1"
	wait_until 30 states_written || fail "the restored job does not compute"
	expect_right
}

container_end() {
	engine_call delete --force
	expect_gone
	expect_no_objects
}

# to_other_gpu [COMMAND]: the job is restored with the other GPU; COMMAND runs before its checkpoint
to_other_gpu() {
	container_config /dev/kfd /dev/dri/renderD128 -- --vram 512K
	container_run
	job_pids_find 1
	root=/proc/${job_pids[0]}/root
	"${1-true}"
	checkpoint
	container_config /dev/kfd /dev/dri/renderD129 -- --vram 512K
	# crun puts the tasks into the container's device cgroup when criu is through: nobody but the user knows by then.
	[ "$engine" = runc ] || echo "KFD_DEVICE_MAP = renderD128=renderD129" >"$images/amdgpu_plugin.conf"
	container_restore 1
	root=/proc/${job_pids[0]}/root
	[ "$(render_minors "${job_pids[0]}")" = 129 ] ||
		fail "$engine: the job has renderD$(render_minors "${job_pids[0]}"), not renderD129"
}

for engine in runc crun; do
	container_config /dev/kfd /dev/dri/renderD128 /dev/dri/renderD129 -- --children 1 --vram 512K --buffers 5
	container_run
	wait_until 30 grep -qs '^phase running' "$job.1" || fail "the job's child does not start"
	job_pids_find 2
	process_shape >"$work/shape"
	checkpoint
	container_restore 2
	expect_shape "$work/shape"
	container_end

	to_other_gpu
	[ "$(stat -c %t:%T "$root/dev/dri/renderD129")" = e2:81 ] || fail "$engine: the container has no node of its new GPU"
	container_end
done

# What is the machine's, or is somewhere else, gets no node.
engine=runc
mkdir "$work/dri"
mknod "$work/dri/renderD128" c 226 128
more_mounts=", {\"destination\": \"/dev/dri\", \"type\": \"none\", \"source\": \"$work/dri\", \"options\": [\"bind\", \"rw\"]}"
to_other_gpu
[ ! -e "$work/dri/renderD129" ] || fail "a node was made in a directory of the machine"
container_end
more_mounts=
link_dri() {
	mkdir "$root/dev/else"
	rm -r "$root/dev/dri"
	ln -s else "$root/dev/dri"
}
to_other_gpu link_dri
[ ! -e "$root/dev/else/renderD129" ] || fail "a node was made behind a symbolic link"
container_end
umount "$bundle/rootfs"
cgroup_options_again
