# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# containerd with runc, by ctr and as Kubernetes calls it: checkpoints in a row, a copy on another GPU, failures
# gpus: 2xmi100
# userland: engines
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

image_make
cdi_make 128 129
containerd_setup

ok run ctr run -d --device amd.com/gpu=0 "$image" one gpujob --state "$inside_state" --vram 1M
job_wait "$(ctr_pid one)" 1
for ((i = 0; i < 3; i++)); do
	ok checkpoint ctr task checkpoint one
	expect_progress
done
ok checkpoint ctr container checkpoint --rw --image --task one localhost:5000/job:copy
expect_progress
ctr_end one
expect_no_objects
ok restore ctr container restore --rw --live two localhost:5000/job:copy
job_wait "$(ctr_pid two)" 1
expect_progress
expect_verified
ok exec ctr task exec --exec-id more two gpujob --state /run/another --background --vram 64K
ctr_end two
expect_no_objects

# The log that containerd names has the reason; the container goes on.
ok run ctr run -d --device amd.com/gpu=0 "$image" bad gpujob --state "$inside_state" --vram 256K --extra dmabuf
job_wait "$(ctr_pid bad)" 1
! call checkpoint ctr task checkpoint bad || fail "a dma-buf was dumped"
log=$(grep -o '/[^ ]*criu-dump.log' "$called" | head -n 1)
grep -q 'Error (amdgpu_plugin): .*dma-buf' "$log" || fail "the log ${log:-, which is not named,} does not say why"
expect_progress
expect_verified
ctr_end bad
expect_no_objects

# ---- as Kubernetes calls it ----

namespaces='"linux": {"security_context": {"namespace_options": {"network": 2, "pid": 1}}}'
pod="{\"metadata\": {\"name\": \"pod\", \"uid\": \"1\", \"namespace\": \"default\"}, \"log_directory\": \"$work\", $namespaces}"

# cri METHOD JSON: sets answer
cri() {
	ok "$1" "$top/tests/e2e/cri/call" "$1" "$2"
	answer=$(sed -n '2s/^[a-z_]* //p' "$called")
}

# cri_start NAME IMAGE GPU [MORE-JSON]: sets container, and the job
cri_start() {
	cri CreateContainer "{\"pod_sandbox_id\": \"$sandbox\", \"sandbox_config\": $pod, \"config\": {
		\"metadata\": {\"name\": \"$1\"}, \"image\": {\"image\": \"$2\"}, \"log_path\": \"$1.log\",
		\"cdi_devices\": [{\"name\": \"amd.com/gpu=$3\"}], $namespaces ${4:-}}}"
	container=$answer
	cri StartContainer "{\"container_id\": \"$container\"}"
	cri ContainerStatus "{\"container_id\": \"$container\", \"verbose\": true}"
	job_wait "$(jq .pid <<<"$answer")" 1
}

setsid "$top/tests/e2e/cri/registry" "$work/oci" >"$work/registry.log" 2>&1 &
disown
wait_until 120 curl -s localhost:5000/v2/ >/dev/null || fail "the registry does not start: $(tail -n 1 "$work/registry.log")"
cri PullImage "{\"image\": {\"image\": \"$image\"}}"
cri RunPodSandbox "{\"config\": $pod}"
sandbox=$answer
cri_start first "$image" 0 ", \"command\": [\"gpujob\", \"--state\", \"$inside_state\", \"--vram\", \"1M\"]"
first=${job_pids[0]}
for ((i = 0; i < 2; i++)); do
	cri CheckpointContainer "{\"container_id\": \"$container\", \"location\": \"$work/first.tar\", \"timeout\": 100}"
	expect_progress
done

# The copy is given the other GPU while the first one runs on.
cri_start second "$work/first.tar" 1
expect_progress
expect_verified
[ "$(render_minors "${job_pids[0]}")" = 129 ] || fail "the copy has renderD$(render_minors "${job_pids[0]}"), not renderD129"
[ "$(stat -c '%t:%T' "/proc/${job_pids[0]}/root/dev/dri/renderD129")" = e2:81 ] || fail "its node is not in the container"
job_attach "$first" 1
expect_progress
expect_verified
cri StopPodSandbox "{\"pod_sandbox_id\": \"$sandbox\"}"
expect_no_objects
