# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# Restored into a mount namespace whose device nodes are absent or are others
# gpus: 1xmi100
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

holder=

# in_namespace COMMANDS: the process is restored into a mount namespace in which these were run; criu is not in it
in_namespace() {
	rm -f "$work/ready"
	[ -z "$holder" ] || kill "$holder"
	unshare -m --propagation private bash -c "set -e; $1; touch '$work/ready'; exec sleep 600" >"$work/holder.log" 2>&1 &
	holder=$!
	wait_until 10 test -e "$work/ready" || fail "no mount namespace: $(tail -n 1 "$work/holder.log")"
	restore_options=(--join-ns "mnt:$holder")
}

machine
job_dump
# Files of nodes that are made for the restore have other paths. In a ramfs, none is left there.
rm "$work/shape"
machine drm_render_minor=140
in_namespace "mount -t ramfs none /dev/dri"
accepted "no render node" 128=140
in_namespace "mount -t ramfs none /dev/dri; mknod /dev/dri/renderD140 c 1 3"
accepted "another device where the render node should be" 128=140
machine count=2 vram_size="256M, 512M"
in_namespace "mount -t ramfs none /dev/dri; mount --bind /dev/null /dev/kfd; umount -l /sys"
accepted "no render node, another /dev/kfd, no sysfs, and a GPU too many" 128=129
kill "$holder"
[ ! -s "$job.log" ] || fail "something was written to the job's standard error: $(head -n 1 "$job.log")"
