# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A suspended container of podman is exported and imported: it is suspended again, and resumed
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# tier: all
# memory: 6000
# seconds: 600

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

# group_do WHAT: by the container's cgroup
group_do() {
	tool_run "$1" --cgroup "$(podman inspect -f '{{.State.CgroupPath}}' "$2")" || fail "$1: $(<"$work/tool.out")"
}

# is_suspended WHEN
is_suspended() {
	tool_run state "${job_pids[0]}" || fail "$1: state: $(<"$work/tool.out")"
	grep -q ': suspended' "$work/tool.out" || fail "$1: state says: $(<"$work/tool.out")"
	is_held "$1"
}

image_make
cdi_make 128 129
podman_setup crun
podman_job one --device /dev/dri/renderD128 -- --vram 1M
expect_verified
group_do suspend one
is_suspended "before the export"
ok export podman container checkpoint --export "$work/job.tar" --compress none one
expect_no_objects
tool_run state || fail "state: $(<"$work/tool.out")"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
ok verify "$top/build/amdgpu-checkpoint" verify "$work/job.tar"
ok remove podman rm one
ok import podman container restore --import "$work/job.tar" --name again
podman_attach again 1
is_suspended "after the import"
group_do resume again
expect_right

# As it is, and in place.
group_do suspend again
ok checkpoint podman container checkpoint again
ok restore podman container restore again
podman_attach again 1
is_suspended "after a restore in place"
ok pause podman pause again
ok unpause podman unpause again
is_suspended "after a pause"
group_do resume again
expect_right
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
ok remove podman rm -f -t 0 again
