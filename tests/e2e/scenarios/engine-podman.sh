# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# podman with crun: checkpoints again and again, archives, a tree with an init, a GPU that two share, failures
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

image_make
cdi_make 128 129
podman_setup crun

# Periodic checkpoints, of which each takes the place of the one before, and the last one is good.
podman_job one --device /dev/dri/renderD128 -- --vram 1M
for ((i = 0; i < 10; i++)); do
	ok checkpoint podman container checkpoint -R one
	expect_progress
done
expect_verified
podman_job two --device /dev/dri/renderD128 -- --vram 1M --seed 2
ok checkpoint podman container checkpoint one
ok checkpoint podman container checkpoint two
expect_no_objects
ok restore podman container restore two
ok restore podman container restore one
for name in one two; do
	podman_attach "$name" 1
	expect_right
done
ok exec podman exec one gpujob --state /run/another --background --vram 64K
expect_another "$(podman_pid one)"
ok stop podman stop -t 60 one
ok remove podman rm -f -t 0 one two
expect_no_objects

# A tree below an init, in an archive, under another name.
ok run podman run -d --name tree --network none --device amd.com/gpu=0 "$image" \
	init -- gpujob --state "$inside_state" --children 1 --vram 512K
job_wait "$(podman_pid tree)" 2
ok export podman container checkpoint -R --export "$work/tree.tar.gz" --compress gzip tree
archive_checked "$work/tree.tar.gz" 2
ok export podman container checkpoint --export "$work/tree.tar" tree
archive_checked "$work/tree.tar" 2
ok inspect checkpointctl inspect --all "$work/tree.tar"
grep -q 'AMD GPU memory pages' "$called" || fail "checkpointctl does not see the GPU's memory: $(tail -n 3 "$called")"
ok remove podman rm tree
ok import podman container restore --import "$work/tree.tar" --name again
podman_attach again 2
expect_right
ok kill podman kill -s KILL again
expect_no_objects

# What fails is said on the terminal, and the container goes on.
podman_functions
engine_refuses
podman_job bad --device /dev/dri/renderD128 -- --vram 256K
ok checkpoint podman container checkpoint bad

# What can be known at once is said on the terminal, too; the images are kept.
dir=$(podman_dir bad)
restore_says() {
	! call restore podman container restore bad || fail "restored: $1"
	grep -q "Error (amdgpu_plugin): .*$1" "$called" || fail "podman does not say \"$1\": $(tail -n 3 "$called")"
	expect_no_objects
}
echo 'KFD_DEVICE_MAP = renderD140=renderD128' >"$dir/checkpoint/amdgpu_plugin.conf"
restore_says 'renderD140 is no GPU of the image'
rm "$dir/checkpoint/amdgpu_plugin.conf"
machine_load 2xmi100 's/= 512M/= 256M/'
restore_says 'cannot place 1 saved GPU on 2 local ones'
machine_load 2xmi100
ok restore podman container restore bad
podman_attach bad 1
expect_right
ok remove podman rm -f -t 0 bad
