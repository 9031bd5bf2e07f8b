# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2317
# docker's experimental checkpoints: in a row, in place, refused
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
docker_setup

docker_attach() {
	job_wait "$(docker inspect -f '{{.State.Pid}}' "$1")" 1
}

ok run docker run -d --name job --network host --device amd.com/gpu=0 "$image" gpujob --state "$inside_state" --vram 1M
docker_attach job
for name in first second; do
	ok checkpoint docker checkpoint create --leave-running job "$name"
	expect_progress
done
ok checkpoint docker checkpoint create job third
wait_until 30 no_objects_left || fail "objects left in the GPU driver: $(objects_left)"
ok restore docker start --checkpoint third job
docker_attach job
expect_right
ok exec docker exec job gpujob --state /run/another --background --vram 64K
expect_another "${job_pids[0]}"
ok remove docker rm -f job
expect_no_objects

engine_start() {
	ok run docker run -d --name "$1" --network host --device /dev/kfd --device /dev/dri/renderD128 "$image" "${@:2}"
}
engine_pid() { docker inspect -f '{{.State.Pid}}' "$1"; }
engine_save() { ok checkpoint docker checkpoint create "$1" saved; }
engine_try() { call checkpoint docker checkpoint create --leave-running "$1" tried; }
engine_reason() { log_reason; }
engine_back() { ok restore docker start --checkpoint saved "$1"; }
engine_end() { ok remove docker rm -f "$1"; }
engine_refuses
engine_shares
