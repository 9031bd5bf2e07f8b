# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# docker's experimental checkpoints: in a row, in place, refused
# gpus: 2xmi100
# userland: engines
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
expect_progress
expect_verified
ok look docker exec job stat -c %t:%T /dev/dri/renderD128
ok remove docker rm -f job
expect_no_objects

ok run docker run -d --name bad --network host --device /dev/kfd --device /dev/dri/renderD128 "$image" \
	gpujob --state "$inside_state" --vram 256K --extra dmabuf
docker_attach bad
! call checkpoint docker checkpoint create bad first || fail "a dma-buf was dumped"
log=$(grep -o '/[^ ]*criu-dump.log' "$called" | head -n 1)
grep -q 'Error (amdgpu_plugin): .*dma-buf' "$log" || fail "the log ${log:-, which is not named,} does not say why"
expect_progress
expect_verified
ok remove docker rm -f bad
