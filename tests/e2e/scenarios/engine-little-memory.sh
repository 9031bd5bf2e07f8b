# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A container that may use 64 MiB of memory and has 2 GiB of VRAM is saved and comes back
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 5000
# vram: 4096
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

machine_load default 's/^vram_size.*/vram_size = 4G/'
image_make
podman_setup runc

# cgroup_of PID: the directory of its cgroup
cgroup_of() {
	echo "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$1/cgroup")"
}

podman_job small --device /dev/dri/renderD128 --memory 64m -- --vram 2G --buffers 2 --gtt 64K --userptr 64K
[ "$(<"$(cgroup_of "${job_pids[0]}")/memory.max")" = 67108864 ] || fail "the container may use more than 64 MiB"
ok checkpoint podman container checkpoint small
size=$(du -sm "$(podman_dir small)/checkpoint" | cut -f 1)
[ "$size" -gt 2000 ] || fail "the images have $size MiB, not 2 GiB"
ok restore podman container restore small
podman_attach small 1
expect_right
cgroup=$(cgroup_of "${job_pids[0]}")
[ "$(<"$cgroup/memory.max")" = 67108864 ] || fail "the restored container may use more than 64 MiB"
grep -q '^oom_kill 0$' "$cgroup/memory.events" || fail "the container ran out of memory: $(tr '\n' ' ' <"$cgroup/memory.events")"
ok remove podman rm -f -t 0 small
