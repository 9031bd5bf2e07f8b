# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# A suspended job below podman and docker: neither of them lets it run without its memory, which it reads by the CPU all the time
# gpus: 1xmi100
# userland: engines
# host: changed, by the engines and their daemons
# tier: all
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"
# shellcheck source=tests/e2e/pauses.sh
. "$top/tests/e2e/pauses.sh"

image_make
read -r _ minor _ < <(machine_gpus)
node=/dev/dri/renderD$minor

# ---- podman ----

podman_setup crun
engine_start() { podman_job one --device "$node" -- --vram 1M --extra reads; }
engine_pause() { ok pause podman pause one; }
engine_unpause() { ok unpause podman unpause one; }
engine_is_paused() { [ "$(podman inspect -f '{{.State.Status}}' one)" = paused ]; }
engine_stop() { ok stop podman stop -t 3 one; }
engine_end() { ok remove podman rm -f -t 0 one; }
shows_hold podman

# ---- docker ----

containerd_setup
docker_setup
engine_start() {
	ok run docker run -d --name one --network host --device /dev/kfd --device "$node" "$image" \
		gpujob --state "$inside_state" --vram 1M --extra reads
	job_wait "$(docker inspect -f '{{.State.Pid}}' one)" 1
}
engine_pause() { ok pause docker pause one; }
engine_unpause() { ok unpause docker unpause one; }
engine_is_paused() { [ "$(docker inspect -f '{{.State.Status}}' one)" = paused ]; }
engine_stop() { ok stop docker stop -t 3 one; }
engine_end() { ok remove docker rm -f one; }
shows_hold docker
