# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2317
# containerd as Kubernetes calls it (CRI): archives, a copy on another GPU while the first runs, a GPU that two share, failures
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

image_make
cdi_make 128 129
containerd_setup

namespaces='"linux": {"security_context": {"namespace_options": {"network": 2, "pid": 1}}}'
pod="{\"metadata\": {\"name\": \"pod\", \"uid\": \"1\", \"namespace\": \"default\"}, \"log_directory\": \"$work\", $namespaces}"

# cri METHOD JSON: sets answer
cri() {
	ok "$1" "$top/tests/e2e/cri/call" "$1" "$2"
	answer=$(sed -n '2s/^[a-z_]* //p' "$called")
}

# cri_start NAME IMAGE DEVICES-JSON [COMMAND...]: a container, whose id is then in ids
declare -A ids
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

# cri_save NAME: into an archive of that name; it goes on
cri_save() {
	cri CheckpointContainer "{\"container_id\": \"${ids[$1]}\", \"location\": \"$work/$1.tar\", \"timeout\": 100}"
}

cri_end() {
	cri RemoveContainer "{\"container_id\": \"${ids[$1]}\"}"
}

setsid "$top/tests/e2e/cri/registry" "$work/oci" >"$work/registry.log" 2>&1 &
disown
wait_until 120 curl -s localhost:5000/v2/ >/dev/null || fail "the registry does not start: $(tail -n 1 "$work/registry.log")"
cri PullImage "{\"image\": {\"image\": \"$image\"}}"
cri RunPodSandbox "{\"config\": $pod}"
sandbox=$answer
by_name='"cdi_devices": [{"name": "amd.com/gpu=NUMBER"}]'
cri_start first "$image" "${by_name/NUMBER/0}" gpujob --state "$inside_state" --vram 1M
first=$(cri_pid first)
job_wait "$first" 1
for ((i = 0; i < 2; i++)); do
	cri_save first
	expect_progress
done
archive_checked "$work/first.tar" 1

# The copy is given the other GPU while the first one runs on.
cri_start second "$work/first.tar" "${by_name/NUMBER/1}"
job_wait "$(cri_pid second)" 1
expect_right
[ "$(render_minors "${job_pids[0]}")" = 129 ] || fail "the copy has renderD$(render_minors "${job_pids[0]}"), not renderD129"
[ "$(stat -c '%t:%T' "/proc/${job_pids[0]}/root/dev/dri/renderD129")" = e2:81 ] || fail "its node is not in the container"
cri ExecSync "{\"container_id\": \"${ids[second]}\", \"timeout\": 60,
	\"cmd\": [\"gpujob\", \"--state\", \"/run/another\", \"--background\", \"--vram\", \"64K\"]}"
expect_another "${job_pids[0]}"
job_attach "$first" 1
expect_right
cri_end first
cri_end second
expect_no_objects

# As AMD's device plugin names devices.
# cri_devices MINOR
cri_devices() {
	local node nodes=
	for node in /dev/kfd "/dev/dri/card$(($1 - 128))" "/dev/dri/renderD$1"; do
		nodes+="${nodes:+, }{\"container_path\": \"$node\", \"host_path\": \"$node\", \"permissions\": \"rw\"}"
	done
	echo "\"devices\": [$nodes]"
}

by_path=$(cri_devices 128)
engine_start() { cri_start "$1" "$image" "$by_path" "${@:2}"; }
engine_pid() { cri_pid "$1"; }
engine_save() {
	cri_save "$1"
	cri_end "$1"
}
engine_try() {
	call checkpoint "$top/tests/e2e/cri/call" CheckpointContainer \
		"{\"container_id\": \"${ids[$1]}\", \"location\": \"$work/$1.tar\", \"timeout\": 100}"
}
engine_reason() { log_reason; }
engine_back() { cri_start "$1" "$work/$1.tar" "$by_path"; }
engine_end() { cri_end "$1"; }
engine_refuses
engine_shares

# By device nodes, too, the copy is given the other GPU.
cri_start third "$work/first.tar" "$(cri_devices 129)"
job_wait "$(cri_pid third)" 1
expect_right
[ "$(render_minors "${job_pids[0]}")" = 129 ] || fail "the third has renderD$(render_minors "${job_pids[0]}"), not renderD129"
cri_end third
expect_no_objects
cri StopPodSandbox "{\"pod_sandbox_id\": \"$sandbox\"}"
