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
registry_start
cri PullImage "{\"image\": {\"image\": \"$image\"}}"
pod_start pod
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
expect_back second 129
[ "$(stat -c '%t:%T' "/proc/${job_pids[0]}/root/dev/dri/renderD129")" = e2:81 ] || fail "its node is not in the container"
job_attach "$first" 1
expect_right
cri_end first
cri_end second
expect_no_objects

# By device nodes.
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

# So, too, the copy is given the other GPU.
cri_start third "$work/first.tar" "$(cri_devices 129)"
expect_back third 129
cri_end third
expect_no_objects
pod_end
