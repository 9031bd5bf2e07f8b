# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# Helpers of the scenarios with container engines: an image that has the job, and containers that run it.
#
# Sourced by a scenario after lib.sh. The job's state file is in its container, and so are the names of its devices.

image=localhost:5000/job:latest
archive=$work/image.tar
inside_state=/run/job

# Whatever the scenario ends with, no container is left for the next one.
engines_end() {
	# Before its place is there, it would note for good that file systems cannot be stacked.
	! mountpoint -q /var/lib/containers || podman rm -f -a -t 0 >/dev/null 2>&1 || true
	docker ps -q 2>/dev/null | xargs -r docker rm -f >/dev/null 2>&1 || true
	ctr container ls -q 2>/dev/null | while read -r container; do
		ctr task delete -f "$container" && ctr container delete "$container"
	done >/dev/null 2>&1 || true
	pkill -KILL -x gpujob || true
	pkill -x docker-registry || true
}
trap engines_end EXIT

# image_file PATH: adds a file of this machine, and the libraries that it needs, to the image
image_file() {
	local file
	for file in "$1" $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true); do
		install -D "$file" "$work/layer/${2:-$file}"
		set -- "$1"
	done
}

# blob FILE: puts it into the archive by its digest, and prints "DIGEST SIZE"
blob() {
	local digest
	digest=$(sha256sum "$1" | cut -d ' ' -f 1)
	cp "$1" "$work/oci/blobs/sha256/$digest"
	printf '%s %s\n' "$digest" "$(stat -c %s "$1")"
}

# What all engines load: an OCI layout, with the list that docker wants besides.
image_make() {
	local layer config manifest size
	mkdir -p "$work/layer"/{bin,dev,etc,proc,run,sys,tmp,var} "$work/oci/blobs/sha256"
	image_file "$(command -v busybox)" /bin/busybox
	image_file "$gpujob" /bin/gpujob
	image_file "$(command -v tini-static)" /bin/init
	ln -sf busybox "$work/layer/bin/sh"
	for name in cat dd echo env kill ls mknod ps sleep stat; do
		ln -sf busybox "$work/layer/bin/$name"
	done
	tar -C "$work/layer" --owner 0 --group 0 --mtime @0 -cf "$work/layer.tar" .
	read -r layer size < <(blob "$work/layer.tar")
	printf '{"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "100000000"]},
		"rootfs": {"type": "layers", "diff_ids": ["sha256:%s"]}}' "$layer" >"$work/config"
	read -r config config_size < <(blob "$work/config")
	printf '{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:%s", "size": %s},
		"layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "sha256:%s", "size": %s}]}' \
		"$config" "$config_size" "$layer" "$size" >"$work/manifest"
	read -r manifest size < <(blob "$work/manifest")
	printf '{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json",
		"digest": "sha256:%s", "size": %s, "annotations": {"io.containerd.image.name": "%s",
		"org.opencontainers.image.ref.name": "%s"}}]}' "$manifest" "$size" "$image" "$image" >"$work/oci/index.json"
	printf '[{"Config": "blobs/sha256/%s", "RepoTags": ["%s"], "Layers": ["blobs/sha256/%s"]}]' \
		"$config" "$image" "$layer" >"$work/oci/manifest.json"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$work/oci/oci-layout"
	tar -C "$work/oci" -cf "$archive" .
	rm -rf "$work/layer" "$work/layer.tar"
}

# cdi_node PATH: as amd-ctk describes it, with the numbers of this moment
cdi_node() {
	stat -c '{"path": "%n", "type": "c", "major": %Hr, "minor": %Lr, "fileMode": '"$((0666))"',
		"permissions": "rwm", "uid": 0, "gid": 0}' "$1"
}

# cdi_make MINOR...: what "amd-ctk cdi generate" writes: a name for each GPU, with its nodes and /dev/kfd, and one for all
cdi_make() {
	local minor number=0 kfd nodes devices='' all=''
	kfd=$(cdi_node /dev/kfd)
	for minor in "$@"; do
		nodes="$(cdi_node "/dev/dri/card$number"), $(cdi_node "/dev/dri/renderD$minor")"
		devices+="{\"name\": \"$number\", \"containerEdits\": {\"deviceNodes\": [$nodes, $kfd]}}, "
		all+="$nodes, "
		number=$((number + 1))
	done
	mkdir -p /etc/cdi
	printf '{"cdiVersion": "0.6.0", "kind": "amd.com/gpu", "devices": [%s
		{"name": "all", "containerEdits": {"deviceNodes": [%s]}}]}' "$devices" "$all$kfd" >/etc/cdi/amd.json
	jq . /etc/cdi/amd.json >/dev/null || fail "the CDI file is no JSON"
}

# engine_dir PATH: a place for an engine's data, on which it can stack file systems; it lasts as long as the machine
engine_dir() {
	mkdir -p "$1"
	mountpoint -q "$1" || mount -t tmpfs tmpfs "$1"
}

# call NAME COMMAND ARG...: its output is in $work/N-NAME.out, behind a line with the command; its status
call() {
	local status=0
	criu_runs=$((criu_runs + 1))
	called=$work/$criu_runs-$1.out
	printf '# %s\n' "$(tr '\n' ' ' <<<"${*:2}")" >"$called"
	timeout -k 5 180 "${@:2}" </dev/null >>"$called" 2>&1 || status=$?
	[ "$status" -ne 124 ] || fail "$1 did not end: ${*:2}"
	return "$status"
}

# ok NAME COMMAND ARG...: it succeeds
ok() {
	call "$@" || fail "${*:2}: status $?: $(tail -n 3 "$called" | tr '\n' ' ')"
}

# page_block SECTION NUMBER [SED-SCRIPT]: into $work/block, the commands of a section's block of $page, with names in place of
# the page's; status 1: there is none
page_block() {
	awk -v section="## $1" -v number="$2" '
		/^## / { inside = $0 == section }
		inside && /^```$/ { fenced = 0 }
		fenced && n == number { print }
		inside && /^```sh$/ { fenced = 1; n++ }' "$page" | sed "${3:-}" >"$work/block"
	[ -s "$work/block" ]
}

# job_attach PID PROCESSES: the job's processes are those of the container in which this process is the first
job_attach() {
	local pid ns
	ns=$(readlink "/proc/$1/ns/pid")
	job=/proc/$1/root$inside_state
	job_pids=()
	for pid in $(pgrep -f "^gpujob --state $inside_state"); do
		[ "$(readlink "/proc/$pid/ns/pid")" != "$ns" ] || job_pids+=("$pid")
	done
	[ "${#job_pids[@]}" -eq "$2" ] || fail "${#job_pids[@]} processes of the job, not $2"
}

# job_wait PID PROCESSES: the same, when they compute
job_wait() {
	local last=/proc/$1/root$inside_state
	[ "$2" -eq 1 ] || last+=.$(($2 - 1))
	wait_until 180 grep -qs '^phase running' "$last" || fail "the job does not start"
	job_attach "$@"
}

# expect_another PID: a program that was started in the container after the restore, with the state file /run/another, computes
expect_another() {
	grep -q '^phase running' "/proc/$1/root/run/another" || fail "a program that was started after the restore does not compute"
}

# ---- what each engine does ----

# An engine's scenario says how, by functions of its own:
#     engine_start NAME COMMAND...   a container with the first GPU
#     engine_pid NAME                the first process of it
#     engine_save NAME               its checkpoint, with which it ends
#     engine_try NAME                the same, and it may fail: status, and what is said is in $called
#     engine_reason                  the lines in which the reason of that stands
#     engine_back NAME               the container as it was saved
#     engine_end NAME                the container is no more

processes_of() {
	[ "$1" != tree ] && echo 1 || echo 2
}

# both_go_on: of two containers, a job and a tree
both_go_on() {
	local container
	for container in tree beside; do
		pair="the container $container"
		job_attach "$(engine_pid "$container")" "$(processes_of "$container")"
		expect_right
	done
	pair=
}

# engine_shares: a tree below an init, and a job beside it on the same GPU, which are saved, and come back in the other
# order.
engine_shares() {
	engine_start tree init -- gpujob --state "$inside_state" --children 1 --vram 512K
	job_wait "$(engine_pid tree)" 2
	engine_start beside gpujob --state "$inside_state" --vram 512K --seed 2
	job_wait "$(engine_pid beside)" 1
	engine_save tree
	engine_save beside
	expect_no_objects
	engine_back beside
	engine_back tree
	both_go_on
	engine_end tree
	engine_end beside
	expect_no_objects
}

# engine_refuses: what is never saved is refused, and the container goes on
engine_refuses() {
	engine_start bad gpujob --state "$inside_state" --vram 256K --extra smi
	job_wait "$(engine_pid bad)" 1
	! engine_try bad || fail "a file of SMI events was dumped"
	grep -q 'Error (amdgpu_plugin): .*SMI events' <(engine_reason) ||
		fail "nobody says why it is refused: $(tail -n 3 "$called" | tr '\n' ' ')"
	expect_right
	engine_end bad
	expect_no_objects
}

# log_reason: the lines of the log that $called names
log_reason() {
	local log
	log=$(grep -o '/[^ ]*criu-dump.log' "$called" | head -n 1)
	[ -z "$log" ] || cat "$log"
}

# archive_checked FILE PROCESSES: amdgpu-checkpoint finds them in an engine's archive, whole, and that they fit here
archive_checked() {
	local tool=$top/build/amdgpu-checkpoint
	ok show "$tool" show "$1"
	[ "$(grep -c '^process ' "$called")" -eq "$2" ] || fail "${1##*/}: not $2 processes: $(tail -n 1 "$called")"
	ok verify "$tool" verify "$1"
	grep -qE '^buffers with data: ([0-9]+), checksums compared: \1, ' "$called" || fail "${1##*/}: $(tail -n 2 "$called" | head -n 1)"
	ok match "$tool" match "$1"
	[ "$(grep -c ': fits$' "$called")" -eq "$2" ] || fail "${1##*/}: does not fit: $(tail -n 1 "$called")"
}

# ---- podman ----

# podman_setup RUNTIME: crun or runc
podman_setup() {
	engine_dir /var/lib/containers
	mkdir -p /etc/containers
	cat >/etc/containers/containers.conf <<-END
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	runtime = "$1"
	END
	printf '[storage]\ndriver = "overlay"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
		>/etc/containers/storage.conf
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
	podman image exists "$image" || ok load podman load -q -i "$archive"
}

# podman_job NAME OPTION... -- ARG...: a container that runs the job
podman_job() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	ok run podman run -d --name "$name" --network none --device /dev/kfd "${options[@]}" "$image" \
		gpujob --state "$inside_state" "$@"
	job_wait "$(podman_pid "$name")" 1
}

podman_pid() {
	podman inspect -f '{{.State.Pid}}' "$1"
}

# podman_attach NAME PROCESSES
podman_attach() {
	job_attach "$(podman_pid "$1")" "$2"
}

# As each engine does.
podman_functions() {
	engine_start() {
		ok run podman run -d --name "$1" --network none --device /dev/kfd --device /dev/dri/renderD128 "$image" "${@:2}"
	}
	engine_pid() { podman_pid "$1"; }
	engine_save() { ok checkpoint podman container checkpoint "$1"; }
	engine_try() { call checkpoint podman container checkpoint "$1"; }
	engine_reason() { cat "$called"; }
	engine_back() { ok restore podman container restore "$1"; }
	engine_end() { ok remove podman rm -f -t 0 "$1"; }
}

# podman_dir NAME: where podman keeps the images and logs of its last checkpoint
podman_dir() {
	podman inspect -f '{{.StaticDir}}' "$1"
}

# ---- containerd ----

# containerd_start: with what its CRI needs
containerd_start() {
	engine_dir /var/lib/containerd
	mkdir -p /etc/containerd
	cat >/etc/containerd/config.toml <<-END
	version = 3
	[plugins.'io.containerd.cri.v1.images'.pinned_images]
	sandbox = "$image"
	[plugins.'io.containerd.cri.v1.runtime']
	disable_apparmor = true
	END
	! ctr version >/dev/null 2>&1 || return 0
	setsid containerd >>"$work/containerd.log" 2>&1 &
	disown
	wait_until 120 ctr version >/dev/null 2>&1 || fail "containerd does not start: $(tail -n 1 "$work/containerd.log")"
}

# containerd_setup: the same, with the image
containerd_setup() {
	containerd_start
	# Of an earlier scenario.
	ctr image ls -q | xargs -r ctr image rm >/dev/null
	ok import ctr image import "$archive"
}

# containerd_remove: and dockerd, which uses it; whoever starts it then finds nothing of what it had
containerd_remove() {
	local daemon
	for daemon in dockerd containerd; do
		pkill -x "$daemon" || true
		wait_until 60 no_program "$daemon" || fail "$daemon does not end"
	done
	! pgrep -f containerd-shim >/dev/null || fail "containerd has left a container"
	umount /var/lib/containerd
	rm -r /run/containerd
}

no_program() {
	! pgrep -x "$1" >/dev/null
}

# ctr_pid CONTAINER
ctr_pid() {
	ctr task ls | awk -v name="$1" '$1 == name { print $2 }'
}

# ctr_end CONTAINER
ctr_end() {
	ok kill ctr task kill -s KILL "$1"
	wait_until 30 ctr_stopped "$1" || fail "$1 does not end"
	call delete ctr task delete "$1" || true
	ok delete ctr container delete "$1"
}

ctr_stopped() {
	ctr task ls | awk -v name="$1" '$1 == name && $3 != "STOPPED" { runs = 1 } END { exit runs }'
}

# ---- containerd as Kubernetes calls it (CRI) ----

namespaces='"linux": {"security_context": {"namespace_options": {"network": 2, "pid": 1}}}'
declare -A ids	# of containers, by name

# registry_start: a registry, with the image that containerd has
registry_start() {
	printf '%s\n' 'version: 0.1' "storage: {filesystem: {rootdirectory: $work/registry}}" 'http: {addr: "localhost:5000"}' \
		>"$work/registry.yml"
	setsid docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
	disown
	wait_until 120 curl -s localhost:5000/v2/ >/dev/null || fail "the registry does not start: $(tail -n 1 "$work/registry.log")"
	ok push ctr image push --plain-http "$image"
}

# cri METHOD JSON: sets answer
cri() {
	ok "$1" "$top/tests/e2e/cri/call" "$1" "$2"
	answer=$(sed -n '2s/^[a-z_]* //p' "$called")
}

# pod_start NAME: the pod of the containers that follow
pod_start() {
	pod="{\"metadata\": {\"name\": \"$1\", \"uid\": \"$1\", \"namespace\": \"default\"}, \"log_directory\": \"$work\", $namespaces}"
	cri RunPodSandbox "{\"config\": $pod}"
	sandbox=$answer
}

pod_end() {
	cri StopPodSandbox "{\"pod_sandbox_id\": \"$sandbox\"}"
	cri RemovePodSandbox "{\"pod_sandbox_id\": \"$sandbox\"}"
}

# cri_devices MINOR: as AMD's device plugin names them
cri_devices() {
	local node card nodes=
	card=$(echo "/sys/class/drm/renderD$1/device/drm"/card*)
	for node in /dev/kfd "/dev/dri/${card##*/}" "/dev/dri/renderD$1"; do
		nodes+="${nodes:+, }{\"container_path\": \"$node\", \"host_path\": \"$node\", \"permissions\": \"rw\"}"
	done
	echo "\"devices\": [$nodes]"
}

# cri_start NAME IMAGE DEVICES-JSON [COMMAND...]: a container
cri_start() {
	local command
	command=$(printf ', "%s"' "${@:4}")
	cri CreateContainer "{\"pod_sandbox_id\": \"$sandbox\", \"sandbox_config\": $pod, \"config\": {
		\"metadata\": {\"name\": \"$1\"}, \"image\": {\"image\": \"$2\"}, \"log_path\": \"$1.log\", $3, $namespaces,
		\"command\": [${4:+${command#, }}]}}"
	ids[$1]=$answer
	cri StartContainer "{\"container_id\": \"${ids[$1]}\"}"
}

cri_pid() {
	cri ContainerStatus "{\"container_id\": \"${ids[$1]}\", \"verbose\": true}"
	jq .pid <<<"$answer"
}

# cri_save NAME [ARCHIVE]: it goes on
cri_save() {
	cri CheckpointContainer "{\"container_id\": \"${ids[$1]}\", \"location\": \"${2:-$work/$1.tar}\", \"timeout\": 100}"
}

# expect_back NAME MINOR: it computes on that GPU, and a program that is started in it then does, too
expect_back() {
	job_wait "$(cri_pid "$1")" 1
	expect_right
	[ "$(render_minors "${job_pids[0]}")" = "$2" ] || fail "the $1 has renderD$(render_minors "${job_pids[0]}"), not renderD$2"
	cri ExecSync "{\"container_id\": \"${ids[$1]}\", \"timeout\": 60,
		\"cmd\": [\"gpujob\", \"--state\", \"/run/another\", \"--background\", \"--vram\", \"64K\"]}"
	expect_another "${job_pids[0]}"
}

cri_end() {
	cri RemoveContainer "{\"container_id\": \"${ids[$1]}\"}"
}

# ---- docker ----

# docker_setup: starts it above containerd, with checkpoints and without networks of its own
docker_setup() {
	engine_dir /var/lib/docker
	if ! docker version >/dev/null 2>&1; then
		setsid dockerd --experimental --containerd /run/containerd/containerd.sock --iptables=false --ip6tables=false \
			--bridge=none >"$work/docker.log" 2>&1 &
		disown
		wait_until 120 docker version >/dev/null 2>&1 || fail "docker does not start: $(tail -n 1 "$work/docker.log")"
	fi
	ok load docker load -q -i "$archive"
}
