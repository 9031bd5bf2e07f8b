# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A container goes to another node by the commands of docs/kubernetes.md, after a node was found that could not take it
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

# All nodes are this machine: the first, and what it is after containerd has lost everything and the GPUs were exchanged.
page=$top/docs/kubernetes.md
section="Move a container to another node"
PATH=$work/bin:$top/build:$PATH

# stand_in NAME COMMANDS: for a program that is not here
stand_in() {
	mkdir -p "$work/bin"
	printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
	chmod 755 "$work/bin/$1"
}

# page_try NODE NUMBER: a block of the section, in the directory of that node, which may be the page's node B
page_try() {
	page_block "$section" "$2" "s,CONTAINER_ID,${ids[first]:-}, ; s,ARCHIVE,$saved,g ; s,REGISTRY/NAME,localhost:5000/moved,g
		s,CONTAINER,first," || fail "the page has no block $2 of commands"
	call "block-$2" env -C "$work/$1" bash -eux "$work/block"
}

page_ok() {
	page_try "$@" || fail "block $2: status $?: $(tail -n 3 "$called" | tr '\n' ' ')"
}

# topology_take NODE GPUS
topology_take() {
	mkdir "$work/$1"
	machine_load "$2"
	page_ok "$1" 1
	cmp "/sys/class/kfd/kfd/topology/nodes/1/properties" "$work/$1/topology/nodes/1/properties" || fail "this is not the topology of $1"
}

# expect_undisturbed: the container is where it was, and computes
expect_undisturbed() {
	job_attach "$first" 1
	expect_right
}

image_make
stand_in ssh 'exec bash -c "${*:2}"'
saved=$work/archives/checkpoint-on-a_default-first-$(date --utc +%Y-%m-%dT%H:%M:%SZ).tar
mkdir "$work/archives"
topology_take other 2xmi210
topology_take b 2xmi100-b

machine_load 2xmi100
containerd_setup
registry_start
cri PullImage "{\"image\": {\"image\": \"$image\"}}"
pod_start on-a
cri_start first "$image" "$(cri_devices 128)" gpujob --state "$inside_state" --vram 1M
first=$(cri_pid first)
job_wait "$first" 1
stand_in crictl "[ \"\$1\" = inspect ] && [ \"\${@: -1}\" = ${ids[first]} ] && echo $first"
page_ok b 2
cri_save first "$saved"
expect_undisturbed
! page_try other 3 || fail "MI210s would take a job of an MI100"
grep -q 'does not fit' "$called" || fail "match does not say why: $(tail -n 1 "$called")"
expect_undisturbed
page_ok b 3
podman_setup crun
printf '[[registry]]\nlocation = "localhost:5000"\ninsecure = true\n' >/etc/containers/registries.conf
page_ok b 4
expect_undisturbed

cri_end first
pod_end
expect_no_objects
containerd_remove
rm "$saved"
machine_load 2xmi100-b
containerd_start
pod_start on-b
cri PullImage '{"image": {"image": "localhost:5000/moved:saved"}}'
cri_start first "$answer" "$(cri_devices 142)"
expect_back first 142
cri_end first
pod_end
