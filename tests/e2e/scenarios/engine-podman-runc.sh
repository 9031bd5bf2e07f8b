# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# podman with runc: archives for another GPU, whose node appears in the container, a GPU that two share, failures
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

image_make
cdi_make 128 129
podman_setup runc

podman_job one --device amd.com/gpu=0 -- --vram 1M
for ((i = 0; i < 3; i++)); do
	ok checkpoint podman container checkpoint -R one
	expect_progress
done
ok checkpoint podman container checkpoint one
ok restore podman container restore one
podman_attach one 1
expect_right
ok export podman container checkpoint --export "$work/one.tar" --compress none one
ok remove podman rm one

# Another GPU: podman takes it from the archive only.
mkdir "$work/unpacked"
tar -C "$work/unpacked" -xf "$work/one.tar"
jq '(.linux.devices[], .linux.resources.devices[]) |=
	(if .major == 226 and .minor == 128 then .minor = 129 else . end) |
	(.linux.devices[] | select(.minor == 129) | .path) = "/dev/dri/renderD129"' \
	"$work/unpacked/spec.dump" >"$work/spec"
cp "$work/spec" "$work/unpacked/spec.dump"
tar -C "$work/unpacked" -cf "$work/other.tar" .
ok import podman container restore --import "$work/other.tar" --name other
podman_attach other 1
expect_right
[ "$(render_minors "${job_pids[0]}")" = 129 ] || fail "the job has renderD$(render_minors "${job_pids[0]}"), not renderD129"
ok look podman exec other stat -c '%t:%T %a' /dev/dri/renderD129
grep -q '^e2:81 666' "$called" || fail "the new GPU's node is $(tail -n 1 "$called")"
ok exec podman exec other gpujob --state /run/another --background --vram 64K
expect_another "${job_pids[0]}"
[ ! -e /dev/dri/renderD130 ] || fail "a node appeared in the machine's /dev"
ok remove podman rm -f -t 0 other
expect_no_objects

# The map to a GPU that the container may not use.
mkdir "$work/checkpoint"
echo 'KFD_DEVICE_MAP = renderD128=renderD129' >"$work/checkpoint/amdgpu_plugin.conf"
tar -C "$work" -rf "$work/one.tar" checkpoint/amdgpu_plugin.conf
! call import podman container restore --import "$work/one.tar" --name hidden || fail "restored on a hidden GPU"
log=$(podman_dir hidden)/restore.log
grep -q 'Error (amdgpu_plugin): .*renderD129.*hides' "$log" || fail "the log does not say why: $(grep Error "$log" | head -n 2)"
ok remove podman rm -f -t 0 hidden
expect_no_objects

podman_functions
engine_refuses
engine_shares
