# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# The commands of docs/containers.md do what the page says
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

page=$top/docs/containers.md

# running ENGINE: pid of the container that runs, if any does
running() {
	case $1 in
	podman) podman ps -q | head -n 1 | while read -r id; do podman_pid "$id"; done ;;
	ctr) ctr task ls | awk '$3 == "RUNNING" { print $2 }' ;;
	docker) docker ps -q | xargs -r docker inspect -f '{{.State.Pid}}' ;;
	esac
}

# page_run ENGINE SECTION: its blocks, one after the other; whatever runs after a block computes
page_run() {
	local number=1 pid
	mkdir -p "$work/page-$1"
	while page_block "$2" "$number" "s,IMAGE,$image,; s,COMMAND,gpujob --state $inside_state --vram 1M,"; do
		pair="$2, block $number"
		ok "block-$1" env -C "$work/page-$1" bash -eux "$work/block"
		pid=$(running "$1")
		if [ -n "$pid" ]; then
			job_wait "$pid" 1
			expect_right
			render_minors "${job_pids[0]}" >>"$work/minors-$1"
		fi
		number=$((number + 1))
	done
	pair=
	[ "$number" -gt 3 ] || fail "the page has $((number - 1)) blocks of commands on $2"
	wait_until 30 no_objects_left || fail "$2: objects left in the GPU driver: $(objects_left)"
}

PATH=$top/build:$PATH
image_make
podman_setup crun
sed -i '1i [containers]\nnetns = "none"' /etc/containers/containers.conf
page_run podman podman
[ "$(sort -u "$work/minors-podman" | tr '\n' ' ')" = "128 129 " ] || fail "podman's container was not on both GPUs"
grep -q '^dump gpu=' /run/gpu-progress || fail "no progress in the file: $(tail -n 1 /run/gpu-progress)"
rm /etc/criu/amdgpu_plugin.conf
containerd_setup
page_run ctr "containerd by ctr"
call delete ctr task delete again || true
ok delete ctr container delete again
docker_setup
page_run docker "docker (experimental)"
